"""Claims without ground truth are shown beside an uninformed guess only."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import Party, client
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Finding
from overheard.questions.label_shares.pages.report import claims_figures
from tests.runs.audits import NO_DEFENSE, shares_finding

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
