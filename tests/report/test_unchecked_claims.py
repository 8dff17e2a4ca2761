"""Claims without ground truth are reported as unchecked, beside a guess."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.claims import Timeline
from overheard.core.parties import Party, client
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, ClaimRow, Finding
from overheard.report.exports import as_csv, as_json
from overheard.report.page import render_page
from overheard.report.page_registry import pages_of
from overheard.report.threat_sentences import threat_sentences, unchecked_claim_sentences
from tests.runs.audits import HOSTILE, NO_DEFENSE, shares_finding

GUESS = {"uniform": (0.5, 0.5), "auxiliary prior": (0.25, 0.75)}


def claim(target: Party, *shares: float, reach: float | None = None) -> Finding:
    finding = shares_finding("recorded", target, (1.0, 0.0), shares, reach=reach)
    return replace(finding, true=None, scores=(), guesses=GUESS)


def unchecked(*findings: Finding) -> Audit:
    run = ArmRun("recorded", 0, NO_DEFENSE, {}, 0, 2, has_truth=False)
    return Audit("Ours", "a run", ("no", HOSTILE), (run,), findings, (), "", {})


@pytest.fixture
def audit() -> Audit:
    # Of client 0 the interval 0.6 +- 0.1 leaves out the guess of 0.25, and 0.4 +- 0.1 that of
    # 0.75; of client 1 neither 0.3 +- 0.1 nor 0.7 +- 0.1 does.
    return unchecked(
        claim(client(0), 0.6, 0.4, reach=0.1), claim(client(1), 0.3, 0.7, reach=0.1)
    )


def test_the_first_sentence_says_that_claims_were_not_checked(audit: Audit):
    sentence, *_ = threat_sentences(with_verdicts(audit).arm_results[0].threat_results[0])
    assert "makes claims about 2 clients (label shares) from 2 rounds" in sentence
    assert "Not checked against the ground truth" in sentence
    assert with_verdicts(audit).arm_results[0].threat_results[0].verdict == "unchecked"


def test_counts_the_intervals_that_exclude_a_guess(audit: Audit):
    words = unchecked_claim_sentences(with_verdicts(audit).arm_results[0].threat_results[0])
    assert "50.0 % of the 4 intervals" in words[1].replace("\N{NO-BREAK SPACE}", " ")
    assert "(auxiliary prior)" in words[1]
    bare = unchecked(claim(client(0), 0.6, 0.4))
    assert (
        len(unchecked_claim_sentences(with_verdicts(bare).arm_results[0].threat_results[0]))
        == 2
    )


def test_doubts_follow_the_intervals(audit: Audit):
    doubted = replace(
        audit,
        findings=tuple(
            replace(one, claimed=replace(one.claimed, doubt="noise")) for one in audit.findings
        ),
    )
    words = unchecked_claim_sentences(with_verdicts(doubted).arm_results[0].threat_results[0])
    assert words[2] == "Intervals not trusted here: noise."
    assert '"doubt":"noise"' in as_json(with_verdicts(doubted))


def test_the_page_lists_claims_as_not_checked(audit: Audit):
    told = render_page(with_verdicts(audit))
    assert "Claimed, not checked" in told
    assert "Guessed and inferred shares of client 0" in told
    assert HOSTILE not in told
    assert "No attack could run" not in told


def test_a_checked_audit_has_no_unchecked_claims():
    run = ArmRun("bare", 0, NO_DEFENSE, {}, 0, 2)
    known = shares_finding("bare", client(0), (1.0, 0.0), (0.6, 0.4))
    audit = Audit("Ours", "a run", ("a", "b"), (run,), (known,), (), "", {})
    assert "not checked" not in render_page(with_verdicts(audit))


@pytest.mark.parametrize(
    ("question", "claimed", "said"),
    [
        (
            "identity",
            ClaimRow((0.5, 2.0, 1.0), candidates=("ann", "bob", "eve"), none_of_them=0.25),
            "bob (2.0), then eve (1.0); none of the candidates with probability 25.0 %",
        ),
        (
            "shift",
            ClaimRow(timeline=Timeline((1,), (3.0,), (2.0,), 0.1, 1, 1)),
            "alarm in round 1; looking back, new data since round 1",
        ),
        ("shift", ClaimRow(timeline=Timeline((1,), (1.0,))), "no alarm"),
        ("membership", ClaimRow((0.5, -1.0, 2.0)), "2 of 3 records claimed as members"),
    ],
)  # fmt: skip
def test_describes_claims_of_every_question(question: str, claimed: ClaimRow, said: str):
    one = claim(client(0), 0.6, 0.4)
    finding = replace(
        one, cell=replace(one.cell, question=question), guesses={}, claimed=claimed
    )
    told = unchecked(finding)
    (block,) = pages_of(question).claim_blocks(told, with_verdicts(told).arm_results)
    (line,) = block.tables[0].rows
    assert line[1].replace("\N{NO-BREAK SPACE}", " ") == said


def test_exports_contain_unchecked_claims_and_guesses(audit: Audit):
    document = as_json(with_verdicts(audit))
    assert '"is_checked":false,"blind":{"uniform":[0.5,0.5]' in document
    assert '"has_truth":false' in document
    assert len(as_csv(audit).splitlines()) == 3
