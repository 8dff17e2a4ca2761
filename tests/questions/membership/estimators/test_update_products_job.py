"""Directions of records are differences of local models that differ in one example."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import concatenate_examples
from overheard.core.seeds import Seed
from overheard.defenses.local_dp import LocalDp
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.membership.estimators.update_products_job import (
    DirectionTraining,
    blend_directions,
)
from overheard.simulation.defended_training import DefendedTraining
from overheard.simulation.simulated_defenses import SimulatedDefenses
from tests.simulation.small_run import RECIPE, blobs, broadcast, build

AUXILIARY, RECORDS = blobs(6, seed=1), blobs(2, seed=2)
POOL = concatenate_examples((AUXILIARY, RECORDS))
PLACES = torch.arange(len(AUXILIARY), len(POOL))


def training(*defenses: LocalDp) -> DirectionTraining:
    simulated = SimulatedDefenses(defenses, 1, Seed(0))
    trained = DefendedTraining(build, RECIPE, simulated, Seed(2), "cpu")
    return DirectionTraining(trained, broadcast(1), POOL, None)


def test_a_direction_is_the_difference_to_the_mean_of_other_examples() -> None:
    companions = training().draw_companions(len(AUXILIARY), 5, Seed(3), 0)
    assert len(companions.rows) == 4
    replacements = sorted(set(range(len(AUXILIARY))) - set(companions.rows.tolist()))
    tasks = [
        ClientTask("companions/0", torch.cat((companions.rows, torch.tensor([other]))))
        for other in (*replacements, *PLACES.tolist())
    ]
    trained = train_cohort(build, broadcast(1), POOL, tasks, RECIPE, seed=Seed(2), round=1)
    updates = torch.stack([flatten_weights(one.delta) for one in trained])
    expected = updates[len(replacements) :] - updates[: len(replacements)].mean(0)
    found = training().directions([companions], PLACES)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_the_noise_of_a_known_defense_cancels() -> None:
    # The clip is never reached, so the defense only adds noise of deviation 5.
    noisy = training(LocalDp(clip=100.0, noise_multiplier=0.05))
    plain = training()
    sets = [(one, one.draw_companions(len(AUXILIARY), 5, Seed(3), 0)) for one in (plain, noisy)]
    expected, found = (one.directions([companions], PLACES) for one, companions in sets)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)


def test_several_companions_are_averaged() -> None:
    one = training()
    sets = [one.draw_companions(len(AUXILIARY), 5, Seed(3), number) for number in range(2)]
    assert sets[0].rows.tolist() != sets[1].rows.tolist()
    each = torch.stack([one.directions([companions], PLACES) for companions in sets])
    torch.testing.assert_close(one.directions(sets, PLACES), each.mean(0))


def test_few_auxiliary_examples_leave_some_to_compare_with() -> None:
    companions = training().draw_companions(4, 100, Seed(3), 0)
    assert len(companions.rows) == 2
    with pytest.raises(NeedsError, match="set trainings to 0"):
        training().draw_companions(1, 5, Seed(3), 0)


def test_blends_at_the_length_of_the_trained_direction() -> None:
    # The gradient (0, 2) is scaled to the length 5 of (3, 4): ((3, 4) + (0, 5)) / 2
    blended = blend_directions(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]]))
    assert blended.tolist() == [[1.5, 4.5]]
    still = blend_directions(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    assert still.tolist() == [[1.5, 2.0]]
