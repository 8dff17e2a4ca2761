"""How the update of a local model changes if it trains on a record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.training_job import ClientTask
from overheard.simulation.chunk import CHUNK
from overheard.simulation.defended_training import DefendedTraining

MAX_REPLACEMENTS = CHUNK
"""The most auxiliary examples that take a record's place, to find the mean update."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Companions:
    """Auxiliary examples beside which every record is trained on.

    Args:
        name: the party's name. It is the same for all records, and so are the order of batches
            and the random draws of defenses: they cancel in differences.
        rows: the companions' rows of the pool.
        reference: the mean update with another auxiliary example in the record's place.

    """

    name: str
    rows: Int[Tensor, " companions"]
    reference: Float[Tensor, " params"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DirectionTraining:
    """Trains local models that differ in one example.

    Args:
        training: how clients train, with the known defenses.
        start: the weights from which they start.
        pool: the examples; the auxiliary ones come first.
        background: public examples that defenses may mix in; None = none.

    """

    training: DefendedTraining
    start: Weights
    pool: Examples
    background: Examples | None

    def draw_companions(self, auxiliary: int, size: int, seed: Seed, number: int) -> Companions:
        """Draw the companions of this number, and train the models of their reference.

        Args:
            auxiliary: number of auxiliary examples in the pool.
            size: number of examples of a client.
            seed: the seed of the draw.
            number: which companions to draw.

        Raises:
            NeedsError: if there are fewer than two auxiliary examples.

        """
        if auxiliary < 2:
            raise NeedsError(
                "trainings beside other examples need two or more auxiliary examples: give the "
                "attacker more, or set trainings to 0"
            )
        order = torch.randperm(auxiliary, generator=seed.child("order", number).generator())
        count = min(max(size - 1, 1), max(auxiliary - MAX_REPLACEMENTS, auxiliary // 2))
        name, rows = f"companions/{number}", order[:count]
        replacements = order[count : count + MAX_REPLACEMENTS]
        return Companions(name, rows, self._updates(name, rows, replacements).mean(0))

    def directions(
        self, companions: Sequence[Companions], records: Int[Tensor, " records"]
    ) -> Float[Tensor, "records params"]:
        """Return each record's mean difference to the reference, over all companions.

        Args:
            companions: one or more.
            records: the records' rows of the pool.

        """
        total = torch.zeros(len(records), len(companions[0].reference))
        for one in companions:
            parts = [
                self._updates(one.name, one.rows, rows) - one.reference
                for rows in torch.split(records, CHUNK)
            ]
            total = total + torch.cat(parts) / len(companions)
        return total

    def _updates(
        self, name: str, rows: Int[Tensor, " companions"], others: Int[Tensor, " others"]
    ) -> Float[Tensor, "others params"]:
        """Return the update of a client with these rows and one other, for each other."""
        tasks = [ClientTask(name, torch.cat((rows, other.reshape(1)))) for other in others]
        updates = self.training.updates(self.start, self.pool, tasks, self.background)
        return torch.stack([flatten_weights(update.delta) for update in updates])


def blend_directions(
    trained: Float[Tensor, "records params"], gradients: Float[Tensor, "records params"]
) -> Float[Tensor, "records params"]:
    """Return the mean of both directions of each record, at the length of the trained one.

    The trained direction is exact for its companions and noisy across companions; the gradient
    is neither.
    """
    lengths = trained.norm(dim=1, keepdim=True)
    norms = gradients.norm(dim=1, keepdim=True)
    blended: Tensor = (trained + gradients * (lengths / norms.clamp(min=1e-12))) / 2
    return blended
