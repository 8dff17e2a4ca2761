"""Sentences state how well members are found, with intervals over clients and records."""

import torch

from overheard.auditing.threat_results import with_verdicts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding
from overheard.findings.threat_results import ThreatResult
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.pages.report import membership_sentences
from overheard.questions.membership.scorer import MembershipScorer
from overheard.report.threat_sentences import threat_sentences

SCORER = MembershipScorer()


def finding(target: int, seed: int, strength: float, outsiders: int) -> Finding:
    """Score 50 members as N(strength, 1) and `outsiders` non-members as N(0, 1)."""
    draw = Seed(seed).child("scores", target).generator()
    scores = torch.randn(50 + outsiders, generator=draw)
    scores[:50] += strength
    true = torch.full((50 + outsiders,), -1.0)
    true[:50] = 1.0
    claim = Membership(scores - strength / 2, strength=torch.linspace(0, 4, len(scores)))
    truth = Membership(true)
    return Finding(
        Cell("open", seed, (SERVER,), "lira", "Lira()", "membership", (0, 1)),
        (client(target),),
        ClaimRow.of(claim),
        ClaimRow.of(truth),
        SCORER.score(claim, truth, SCORER.guesses(truth, Knowledge(2))),
    )


def threat_of(strength: float, outsiders: int, clients: int, seeds: int) -> ThreatResult:
    findings = tuple(
        finding(target, seed, strength, outsiders)
        for seed in range(seeds)
        for target in range(clients)
    )
    runs = tuple(ArmRun("open", seed, (), {}, 0, 8) for seed in range(seeds))
    audit = Audit("Records", "Made up", ("a", "b"), runs, findings, (), "", {})
    (arm,) = with_verdicts(audit).arm_results
    (threat_result,) = arm.threat_results
    return threat_result


def said(strength: float, outsiders: int = 1000, clients: int = 4, seeds: int = 2) -> str:
    threat_result = threat_of(strength, outsiders, clients, seeds)
    words = membership_sentences(threat_result.attack_results[0])
    assert all(sentence in threat_sentences(threat_result) for sentence in words)
    return " ".join(words).replace("\u00a0", " ")


def test_a_single_claim_has_only_the_interval_over_records() -> None:
    text = said(2.0, clients=1, seeds=1)
    assert "over clients" not in text
    assert text.count("% over records; guessing") == 3


def test_states_the_interval_of_the_false_positive_rate() -> None:
    # Clopper and Pearson: 1 of 1,000 is 0.0025 to 0.56 %.
    assert (
        "With 1,000 non-members, the 95 % interval of the 0.1 % false positive rate is "
        "0.0025 to 0.56 %." in said(1.0, seeds=1)
    )
    fewer = said(1.0, outsiders=200)
    assert "With 400 non-members, the 95 % interval of the 1 % false positive rate" in fewer
    assert "0.1 %" not in fewer


def test_states_only_accuracy_if_there_are_too_few_non_members() -> None:
    text = said(1.0, outsiders=20)
    assert text.startswith("At a threshold fixed in advance, ")
    assert "guessing 50.0 %" in text


def test_states_how_far_records_could_stand_out_as_an_envelope() -> None:
    # Of strengths from 0 to 4 the median is 2: Phi(2 - 2.326) is 37 %. A tenth is above 3.6.
    text = " ".join(threat_sentences(threat_of(1.0, 1000, 1, 1))).replace("\u00a0", " ")
    assert "half of the records by at most 2.0 standard deviations, a tenth by 3.6" in text
    assert "a member would be found in 37.2 %, 89.9 % and 94.9 % of cases" in text
    assert "an upper envelope of this test at the broadcast" in text
    assert "cannot be read" not in text
