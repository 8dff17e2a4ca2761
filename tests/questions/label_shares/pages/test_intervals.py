"""Reports compare the intervals that attacks state with the truth."""

from collections.abc import Sequence
from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, client
from overheard.core.scorer import Score
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.threat_results import ArmResult
from overheard.questions.label_shares.pages.report import interval_sentences, interval_tables
from tests.runs.audits import shares_finding


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
