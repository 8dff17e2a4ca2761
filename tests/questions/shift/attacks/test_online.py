"""What comes later changes neither the statistic nor the alarm of earlier rounds."""

import pytest

from overheard.core.attack import Attack
from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.questions.shift.claim import Shift
from tests.runs.two_clients import (
    SHORT_SHIFT_ROUND,
    knowledge_of_many_steps,
    simulate_many_steps,
)

KNOWN = knowledge_of_many_steps(virtual_clients=48)


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [
        ShiftTrend(trend=2),
        ShiftTrend(information="representations", metric="cmd", trend=3, standardise=True),
        ShiftTrend(trend=2, simulated_runs=8),
        ValidationShift(trend=2),
        ValidationShift(measure="accuracy", trend=2, simulated_runs=8),
        ShiftTracking(most_virtual=48),
        ShiftTracking(follows="representations", most_virtual=48),
    ],
    ids=repr,
)
def test_the_statistic_of_a_round_does_not_depend_on_later_rounds(
    attack: Attack[Shift],
) -> None:
    # These runs are equal up to the update of the round before the shift.
    same, shifted = (
        attack.infer(
            simulate_many_steps(even, 2).seen_by(client(0)), (COHORT,), KNOWN, Seed(0)
        )[COHORT].evidence
        for even in (None, 0.95)
    )
    assert same.rounds == shifted.rounds
    by_round = zip(same.rounds, same.statistic, shifted.statistic, strict=True)
    differs = {number: one != other for number, one, other in by_round}
    assert differs == {number: number >= SHORT_SHIFT_ROUND for number in differs}
    assert min(differs) < SHORT_SHIFT_ROUND
    assert same.threshold == shifted.threshold
