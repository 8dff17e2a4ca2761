"""The defenses of virtual clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch

from overheard.core.defense import Defense, DefenseContext, clear_metrics
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.messages import Update, is_finite
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.learning.training_job import ClientResult, ClientTask


@final
@dataclass(frozen=True, slots=True)
class SimulatedDefenses:
    """Known defenses in one simulated round, in the order in which they act.

    Args:
        defenses: applied to data and updates.
        round: the simulated round.
        seed: the seed of all draws.

    """

    defenses: tuple[Defense, ...]
    round: int
    seed: Seed

    def defended_examples(
        self, data: Examples, name: str, background: Examples | None
    ) -> Examples:
        """Return the data on which the client of this name trains."""
        for defense in self.defenses:
            data = defense.on_data(data, self.defense_context(defense, name, background))
        return data

    def defended_tasks(
        self, pool: Examples, tasks: Sequence[ClientTask], background: Examples | None
    ) -> tuple[Examples, list[ClientTask]]:
        """Return the examples of all clients after the defenses, and the clients' rows of them.

        Without a defense that changes examples, the pool and the clients are returned as given.
        """
        if all(type(defense).on_data is Defense.on_data for defense in self.defenses):
            return pool, list(tasks)
        datasets, defended, start = [], [], 0
        for task in tasks:
            data = self.defended_examples(pool.take(task.rows), task.name, background)
            defended.append(ClientTask(task.name, torch.arange(start, start + len(data))))
            start += len(data)
            datasets.append(data)
        return concatenate_examples(datasets), defended

    def defended_update(self, trained: ClientResult) -> Update:
        """Return the update that a trained client sends.

        Raises:
            NeedsError: if its training diverged.

        """
        name = trained.client.name
        metrics = clear_metrics(trained.loss, self.defenses)
        update = Update(trained.delta, len(trained.client.rows), metrics)
        if not all(map(is_finite, update.delta.values())):
            raise NeedsError(
                f"the training of {name} diverged in round {self.round} (its weights are NaN "
                "or infinite): lower the rate of the recipe that the attacker assumes"
            )
        for defense in self.defenses:
            update = defense.on_update(update, self.defense_context(defense, name))
        return update

    def defense_context(
        self, defense: Defense, name: str, background: Examples | None = None
    ) -> DefenseContext:
        """Return the context in which a defense acts for the party of this name."""
        return DefenseContext(
            self.round,
            Party(name),
            self.seed.child("defense", defense.name, self.round, name),
            background=background,
            persistent_seed=self.seed.child("lasting", defense.name, name),
        )
