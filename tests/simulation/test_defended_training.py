import torch

from overheard.core.seeds import Seed
from overheard.defenses.local_dp import LocalDp
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.simulation.defended_training import DefendedTraining
from overheard.simulation.simulated_defenses import SimulatedDefenses
from tests.simulation.small_run import RECIPE, blobs, broadcast, build

POOL = blobs(4)
TASKS = [ClientTask("virtual/0", torch.arange(6)), ClientTask("virtual/1", torch.arange(3, 9))]


def test_updates_are_those_of_the_training_after_the_defenses() -> None:
    defenses = SimulatedDefenses((LocalDp(clip=0.01, noise_multiplier=0.0),), 1, Seed(0))
    training = DefendedTraining(build, RECIPE, defenses, Seed(2), "cpu")
    trained = train_cohort(build, broadcast(1), POOL, TASKS, RECIPE, seed=Seed(2), round=1)
    for update, bare in zip(
        training.updates(broadcast(1), POOL, TASKS, None), trained, strict=True
    ):
        norm = sum(float(part.square().sum()) for part in bare.delta.values()) ** 0.5
        assert norm > 0.01
        for name, part in update.delta.items():
            torch.testing.assert_close(part, bare.delta[name] * (0.01 / norm))
        assert update.examples == 6
