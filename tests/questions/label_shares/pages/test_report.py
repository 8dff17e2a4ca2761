"""The pages on label shares."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.scorer import Score
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding, Refusal
from overheard.findings.threat_results import ArmResult
from overheard.questions.label_shares.pages.report import (
    claims_figures,
    interval_sentences,
    interval_tables,
)
from overheard.questions.label_shares.pages.shares_figures import MAX_TARGETS, shares_figures
from overheard.report.page import render_page
from tests.runs.audits import NO_DEFENSE, shares_finding


def test_a_section_without_shares_says_why(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    audit = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    html = render_page(with_verdicts(audit))
    assert "No label shares were inferred." in html
    assert "Not shown, since not measured: none · The server, about each client" in html


def arms_of(small: Audit, findings: Sequence[Finding]) -> tuple[ArmResult, ...]:
    return with_verdicts(replace(small, findings=tuple(findings))).arm_results


def sentences(small: Audit, *findings: Finding) -> list[str]:
    (first, _) = arms_of(small, findings)
    return [text.replace("\u00a0", " ") for text in interval_sentences(first.threat_results[0])]


def bounded(number: int, claimed: float, reach: float, arm: str = "none") -> Finding:
    return shares_finding(arm, client(number), (0.5, 0.5), (claimed, 1 - claimed), reach=reach)


def test_coverage_is_reported_with_its_interval(
    small: Audit,
) -> None:
    # Errors of 0.05 and 0.1, intervals of 0.06: both shares of the first
    # client are inside, none of the second.
    assert sentences(small, bounded(0, 0.55, 0.06), bounded(1, 0.6, 0.06)) == [
        "The 90 % intervals of decaf contain the true share for 50.0 % of the shares (95 % "
        "interval 0 to 100 %): they are too narrow to be trusted."
    ]
    assert sentences(small, bounded(0, 0.55, 0.06), bounded(1, 0.53, 0.06)) == [
        "The 90 % intervals of decaf contain the true share for 100.0 % of the shares (95 % "
        "interval 16 to 100 %)."
    ]


def test_doubted_claims_are_said_to_be_so(small: Audit) -> None:
    doubted = [
        replace(one, scores=(*one.scores, Score("doubted", value, "lower", {}, {})))
        for one, value in ((bounded(0, 0.55, 0.06), 1.0), (bounded(1, 0.53, 0.06), 0.0))
    ]
    (_, sentence) = sentences(small, *doubted)
    assert sentence.startswith(
        "Intervals not trusted here: decaf itself doubts 50.0 % of its claims."
    )
    (table,) = interval_tables(arms_of(small, doubted))
    assert table.rows[0][5].replace("\u00a0", " ") == "50 %"


def test_a_reported_size_is_not_called_an_estimate(small: Audit) -> None:
    reported = shares_finding("none", client(0), (1.0, 0.0), (0.9, 0.1), size=(0.0, 1.0))
    assert sentences(small, reported) == [
        "decaf need not estimate how many examples a client trained on: this number is sent "
        "with the updates."
    ]


def test_an_observing_client_estimates_the_size_of_the_other_clients(small: Audit) -> None:
    cohort = shares_finding(
        "none", COHORT, (1.0, 0.0), (0.9, 0.1), size=(0.5, 1.0), observers=(client(0),)
    )
    assert sentences(small, cohort)[0].startswith(
        "decaf estimates how many examples the other clients together trained on. It is wrong"
    )


def test_the_table_has_a_row_for_each_attack_and_arm_with_intervals(
    small: Audit,
) -> None:
    sized = shares_finding("none", client(0), (0.5, 0.5), (0.4, 0.6), attack="whispers",
                           size=(1.0, 0.0))  # fmt: skip
    findings = [
        bounded(0, 0.55, 0.06),
        bounded(0, 0.6, 0.06, "noise"),
        small.findings[1],
        sized,
    ]
    (table,) = interval_tables(arms_of(small, findings))
    lines = [tuple(cell.replace("\u00a0", " ") for cell in line) for line in table.rows]
    # decaf without defenses: the intervals of one client contain both shares, the other has no
    # intervals. With noise, none contains its share. Intervals extend 0.06 to each side.
    assert set(lines) == {
        ("none", "decaf", "100 %", "–", "12 points", "–", "–", "–"),
        ("none", "whispers", "–", "–", "–", "–", "2.0", "0 %"),
        ("noise", "decaf", "0 %", "–", "12 points", "–", "–", "–"),
    }
    assert len(table.headers) == len(lines[0])
    assert table.caption.endswith("The server, about each client: label shares")


@pytest.mark.slow
def test_shows_the_most_different_of_many_clients_and_says_so(
    small: Audit,
) -> None:
    # Client n holds a share of n / 30 of the first class, mean 12.5 / 30: the two nearest to
    # it, 12 and 13, are left out.
    findings = tuple(
        shares_finding("none", client(n), (n / 30, 1 - n / 30), (0.5, 0.5)) for n in range(26)
    )
    (figure,) = shares_figures(
        with_verdicts(replace(small, findings=findings)).arm_results, ("cat", "dog")
    )
    assert len(figure.panels) == len(figure.table.rows) == MAX_TARGETS
    assert "24 of 26 clients" in figure.note
    assert "findings.csv" in figure.note
    headings = {panel.heading for panel in figure.panels}
    assert {f"client {n}" for n in range(26)} - headings == {"client 12", "client 13"}


def test_intervals_are_in_the_figure_and_in_its_table(small: Audit) -> None:
    findings = (shares_finding("none", client(0), (0.2, 0.8), (0.25, 0.75), reach=0.1),)
    (figure,) = shares_figures(
        with_verdicts(replace(small, findings=findings)).arm_results, ("cat", "dog")
    )
    assert figure.table.rows == (("client 0", "20 → 25 (15 to 35)", "80 → 75 (65 to 85)"),)
    assert figure.note.replace("\u00a0", " ").endswith("Line: its 90 % interval.")
    assert "(with 90" in figure.table.caption
    unbounded = replace(findings[0], claimed=ClaimRow(findings[0].claimed.numbers))
    (bare,) = shares_figures(
        with_verdicts(replace(small, findings=(unbounded,))).arm_results,
        ("cat", "dog"),
    )
    assert "interval" not in bare.note
    assert bare.panels[0].drawing != figure.panels[0].drawing


def test_the_table_gives_true_and_inferred_shares_in_percent(small: Audit) -> None:
    figure = shares_figures(small.arm_results, small.class_names)[0]
    assert figure.table.headers == ("Client", "cat", "dog")
    assert figure.table.rows[1] == ("client 1", "20 → 22", "80 → 78")


GUESS = {"uniform": (0.5, 0.5), "auxiliary prior": (0.25, 0.75)}


def claim(target: Party, *shares: float, reach: float | None = None) -> Finding:
    finding = shares_finding("recorded", target, (1.0, 0.0), shares, reach=reach)
    return replace(finding, true=None, scores=(), guesses=GUESS)


def unchecked(*findings: Finding) -> Audit:
    run = ArmRun("recorded", 0, NO_DEFENSE, {}, 0, 2, has_truth=False)
    return Audit("Ours", "a run", ("no", "yes"), (run,), findings, (), "", {})


def test_shows_each_claim_beside_the_guess_without_a_truth() -> None:
    audit = unchecked(
        claim(client(0), 0.6, 0.4, reach=0.1), claim(client(1), 0.3, 0.7, reach=0.1)
    )
    (figure,) = claims_figures(with_verdicts(audit).arm_results, audit.class_names)
    assert [panel.heading for panel in figure.panels] == ["client 0", "client 1"]
    assert figure.table.rows[0] == ("Uninformed guess: uniform", "50", "50")
    assert figure.table.rows[2] == ("client 0", "60 (50 to 70)", "40 (30 to 50)")


def test_says_why_the_attack_does_not_trust_its_intervals() -> None:
    trusted = claim(client(0), 0.6, 0.4, reach=0.1)
    claimed = replace(trusted.claimed, doubt="the updates carry noise")
    doubted = replace(trusted, targets=(client(1),), claimed=claimed)
    for findings, said in (
        ((trusted,), ""),
        ((doubted,), " Intervals not trusted here: the updates carry noise."),
        ((trusted, doubted), " Intervals not trusted here, for 1 of 2 claims: the updates"),
    ):
        audit = unchecked(*findings)
        (figure,) = claims_figures(with_verdicts(audit).arm_results, audit.class_names)
        assert ("not trusted" in figure.note) == bool(said)
        assert said in figure.note


def test_shows_the_clients_furthest_from_the_guess():
    many = unchecked(*(claim(client(n), 0.25 + n / 100, 0.75 - n / 100) for n in range(30)))
    (figure,) = claims_figures(with_verdicts(many).arm_results, many.class_names)
    assert figure.panels[0].heading == "client 6"
    assert len(figure.panels) == 24
    assert "the 24 of 30 clients" in figure.note
