"""The plugins of this package satisfy Overheard's contracts and find planted leaks."""

from dataclasses import dataclass, replace

import pytest
from overheard_sizes.attack import UpdateNorm
from overheard_sizes.claim import LargerHalf
from overheard_sizes.defense import EvenNorm
from overheard_sizes.question import LargerHalfQuestion
from overheard_sizes.scorer import LargerHalfScorer

from overheard.core.defense import DefenseContext
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.testing import check_attack, check_defense, check_question, check_scorer
from overheard.testing.planted_runs.planted_labels import simulate_one_round
from overheard.testing.planted_runs.planted_run import PlantedRun

SIZES = ((60, 4, 4, 4), (4, 20, 4, 4), (4, 4, 80, 4), (4, 4, 4, 12))
"""Label counts of clients with 72, 32, 92 and 24 examples: two are larger than the rest."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run to try the attack on."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge
    targets: tuple[Party, ...]


def uneven(defense: EvenNorm | None = None) -> PlantedRun:
    run = simulate_one_round(SIZES)
    messages = [
        replace(
            one,
            body=defense.on_update(one.body, DefenseContext(one.round, one.sender, Seed(0))),
        )
        if defense is not None and isinstance(one.body, Update)
        else one
        for one in run.transcript.messages
    ]
    return Run(Transcript(tuple(messages)), run.truth, run.knowledge, run.targets)


def test_the_attack_finds_the_leak() -> None:
    check_attack(UpdateNorm(), leaky=uneven(), scorer=LargerHalfScorer())


def test_the_attack_finds_nothing_behind_the_defense() -> None:
    check_attack(
        UpdateNorm(), leaky=uneven(), leak_free=uneven(EvenNorm()), scorer=LargerHalfScorer()
    )


def test_the_defense_satisfies_its_contract() -> None:
    check_defense(EvenNorm())


def test_the_question_and_its_scorer_satisfy_their_contracts() -> None:
    check_question(LargerHalfQuestion())
    check_scorer(LargerHalfScorer(), LargerHalf(0.5))


def test_refuses_an_invalid_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        LargerHalf(1.5)
