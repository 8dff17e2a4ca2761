"""The trend of a rival's source, standardised by simulated runs without a shift."""

from dataclasses import replace

import pytest
import torch

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard.questions.shift.claim import Shift
from tests.runs.two_clients import (
    SHORT_SHIFT_ROUND,
    knowledge_of_many_steps,
    simulate_many_steps,
)

KNOWN = knowledge_of_many_steps()


def claim_on(
    attack: Attack[Shift], even: float | None, seed: int, knowledge: Knowledge = KNOWN
) -> Shift:
    view = simulate_many_steps(even, seed).seen_by(client(0))
    return attack.infer(view, (COHORT,), knowledge, Seed(0))[COHORT]


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    [ShiftTrend(information="representations", trend=2), ValidationShift(trend=2)],
    ids=lambda attack: attack.name,
)
def test_a_shift_stands_out_on_the_scale_of_simulated_runs_and_an_exchange_does_not(
    attack: ShiftTrend | ValidationShift,
) -> None:
    plain = claim_on(attack, 0.95, 4).evidence
    standardised = replace(attack, simulated_runs=16)
    shifted = claim_on(standardised, 0.95, 4).evidence
    assert shifted.since >= SHORT_SHIFT_ROUND
    unshifted = claim_on(standardised, 0.5, 4).evidence
    assert max(shifted.statistic) > 2 * max(unshifted.statistic)
    # The published statistic is not changed, and neither raises an alarm.
    assert claim_on(attack, 0.95, 4).evidence == plain
    assert shifted.threshold is plain.threshold is None


@pytest.mark.parametrize("kind", [ShiftTrend, ValidationShift])
def test_refuses_too_few_runs_and_broadcasts_with_the_observers_own_part(
    kind: type[ShiftTrend | ValidationShift],
) -> None:
    with pytest.raises(ValueError, match="simulated_runs must be 0, or 8 or more, got 7"):
        kind(simulated_runs=7)
    with pytest.raises(ValueError, match="simulated_runs needs extract"):
        kind(simulated_runs=8, extract=False)


def test_refuses_to_simulate_fewer_runs_than_give_a_scale() -> None:
    poor = replace(KNOWN, compute=replace(KNOWN.compute, virtual_clients=7))
    with pytest.raises(NeedsError, match="needs 8 virtual clients or more for"):
        claim_on(ShiftTrend(trend=2, simulated_runs=16), None, 4, poor)


@pytest.mark.parametrize("kept", [0, 2])
def test_a_simulation_needs_three_examples_of_every_class(kept: int) -> None:
    auxiliary = KNOWN.auxiliary
    of_label = (auxiliary.labels == 1).nonzero().flatten()
    rows = torch.cat(((auxiliary.labels != 1).nonzero().flatten(), of_label[:kept]))
    poor = replace(KNOWN, auxiliary=auxiliary.take(rows))
    with pytest.raises(NeedsError, match="need 3 auxiliary examples or more of every class"):
        claim_on(ShiftTrend(trend=2, simulated_runs=8), None, 4, poor)


def test_a_simulation_needs_the_recipe() -> None:
    ignorant = replace(KNOWN, recipe=None)
    assert claim_on(ShiftTrend(trend=2), None, 4, ignorant).evidence.rounds
    with pytest.raises(NeedsError, match="grant the attacker what is missing"):
        claim_on(ShiftTrend(trend=2, simulated_runs=8), None, 4, ignorant)
