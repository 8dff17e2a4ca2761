"""The training of simulated clients with the defenses that the attacker knows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Update, Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.simulation.simulated_defenses import SimulatedDefenses


@final
@dataclass(frozen=True, slots=True)
class DefendedTraining:
    """The local training of simulated clients in one round, from examples to sent updates.

    Args:
        build_model: builds the architecture.
        recipe: how the clients train.
        defenses: applied to their examples and updates.
        seed: the seed of the order of batches.
        device: where to compute.

    """

    build_model: BuildModel
    recipe: Recipe
    defenses: SimulatedDefenses
    seed: Seed
    device: str

    def updates(
        self,
        start: Weights,
        pool: Examples,
        clients: Sequence[ClientTask],
        background: Examples | None,
    ) -> Iterator[Update]:
        """Yield the update that each client sends, in order; all train in one chunk.

        Args:
            start: the weights from which they start.
            pool: examples of all clients.
            clients: their names and their rows of the pool.
            background: public examples that defenses may mix in; None = none.

        Raises:
            NeedsError: if a training diverged.

        """
        pool, clients = self.defenses.defended_tasks(pool, clients, background)
        trained = train_cohort(
            self.build_model,
            start,
            pool.to(self.device),
            clients,
            self.recipe,
            seed=self.seed,
            round=self.defenses.round,
            chunk=len(clients),
            workers=1,
            device=self.device,
        )
        return (self.defenses.defended_update(result) for result in trained)
