"""Where its promise cannot be kept, shift_tracking says so and gives no alarm."""

from dataclasses import replace

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from tests.runs.two_clients import (
    DIGITS,
    KNOWLEDGE,
    MANY_STEPS,
    UNUSED_ROWS,
    simulate_many_steps,
)


def test_states_the_rate_without_a_threshold_if_it_cannot_keep_the_rate() -> None:
    # Of 24 simulated federations, 16 have no shift: too few for 1 in 20.
    known = replace(
        KNOWLEDGE,
        auxiliary=DIGITS.train.take(UNUSED_ROWS),
        recipe=MANY_STEPS,
        compute=ComputeSettings(virtual_clients=24, cache=MemoryTensorCache(), workers=1),
    )
    view = simulate_many_steps(0.95, 0).seen_by(client(0))
    for rate, is_uncalibrated in ((0.05, True), (0.2, False)):
        attack = ShiftTracking(most_virtual=24, false_alarm_rate=rate)
        evidence = attack.infer(view, (COHORT,), known, Seed(0))[COHORT].evidence
        assert evidence.is_uncalibrated is is_uncalibrated
        assert evidence.false_alarm_rate == rate
        assert (evidence.alarm is None) is is_uncalibrated
