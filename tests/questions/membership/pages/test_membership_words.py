"""How well records are told apart is said in plain sentences, with intervals of two kinds."""

import torch

from overheard.auditing.exposures import arms
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.findings.finding import ArmRun, Audit, Cell, Finding
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.pages.membership_words import membership_words
from overheard.questions.membership.scorer import MembershipScorer
from overheard.report.words import exposure_words

SCORER = MembershipScorer()


def finding(target: int, seed: int, strength: float, outsiders: int) -> Finding:
    """Fifty own records, standard normal scores a `strength` higher, and those of nobody."""
    draw = Seed(seed).child("scores", target).generator()
    scores = torch.randn(50 + outsiders, generator=draw)
    scores[:50] += strength
    true = torch.full((50 + outsiders,), -1.0)
    true[:50] = 1.0
    claim, answer = Membership(scores - strength / 2), Membership(true)
    return Finding(
        Cell("open", seed, (SERVER,), "lira", "Lira()", "membership", (0, 1)),
        client(target),
        claim.numbers(),
        answer.numbers(),
        SCORER.score(claim, answer, SCORER.guesses(answer, Knowledge(2))),
    )


def said(strength: float, outsiders: int = 1000, clients: int = 4, seeds: int = 2) -> str:
    findings = tuple(
        finding(target, seed, strength, outsiders)
        for seed in range(seeds)
        for target in range(clients)
    )
    runs = tuple(ArmRun("open", seed, (), {}, 0, 8) for seed in range(seeds))
    told = Audit("Records", "Made up", ("a", "b"), runs, findings, (), "", {})
    (arm,) = arms(told, Seed(0))
    (exposure,) = arm.exposures
    words = membership_words(exposure.cases[0])
    assert all(sentence in exposure_words(exposure) for sentence in words)
    return " ".join(words).replace("\u00a0", " ")


def test_both_kinds_of_intervals_stand_beside_each_rate() -> None:
    text = said(2.0)
    assert "Of the records that were trained on it finds" in text
    assert "at 1 % false positives (95 % interval" in text
    assert "at 0.1 % false positives (95 % interval" in text
    assert text.count("% over clients and runs, ") == 3
    assert text.count("% over records; guessing") == 3
    assert "those of one client are taken as independent given its model" in text


def test_of_one_answer_there_is_the_interval_over_records_alone() -> None:
    text = said(2.0, clients=1, seeds=1)
    assert "over clients" not in text
    assert text.count("% over records; guessing") == 3


def test_how_small_a_rate_can_be_told_is_said() -> None:
    # Clopper and Pearson: 1 of 1,000 is 0.0025 to 0.56 %.
    assert (
        "With 1,000 records of nobody, what is told as 0.1 % false positives may truly be "
        "0.0025 to 0.56 %." in said(1.0, seeds=1)
    )
    fewer = said(1.0, outsiders=200)
    assert "With 400 records of nobody, what is told as 1 % false positives" in fewer
    assert "0.1 %" not in fewer


def test_where_so_few_tell_no_rate_accuracy_is_told_alone() -> None:
    text = said(1.0, outsiders=20)
    assert text.startswith("Told apart at a threshold that is set beforehand, ")
    assert "guessing 50.0 %" in text
