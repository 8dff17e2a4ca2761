"""How the numbers to predict are distributed among each client's examples."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, final

import torch
from annotated_types import Len
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.parties import COHORT, Party
from overheard.core.settings import Positive
from overheard.core.true_facts.stated import refuse_others, refuse_repetition
from overheard.core.truth import Renaming, TrueFact

GRID = 21
"""Quantiles that are stated of each number: at 0, 0.05, ... 1."""

ROUNDING = 1e-5
"""Relative error of a stated number that counts as rounding."""


@final
@dataclass(frozen=True, slots=True)
class StatedNumber:
    """One number to predict: its mean and its quantiles at 0, 0.05, ... 1."""

    mean: float
    quantiles: Annotated[tuple[float, ...], Len(GRID, GRID)]


@final
@dataclass(frozen=True, slots=True)
class StatedTargets:
    """The numbers to predict of a client, as truth.json states them."""

    party: str
    examples: Positive
    numbers: tuple[StatedNumber, ...]


@final
@dataclass(frozen=True, slots=True)
class ClientTargets(TrueFact):
    """By client, how its numbers to predict are distributed over all its examples."""

    stated: Mapping[Party, StatedTargets]

    key = "targets"
    form = tuple[StatedTargets, ...]
    how_to_get = (
        "the ground truth does not state the numbers to predict of clients: write it by "
        "`overheard truth RECORDING --targets TABLE`, or ask another question"
    )

    @classmethod
    def from_json(cls, stated: tuple[StatedTargets, ...]) -> "ClientTargets":
        """Return the distributions that truth.json states.

        Raises:
            ValueError: if a client is stated twice or not as the others, or a number is not
                finite, or a mean is outside of its quantiles.

        """
        names = [one.party for one in stated]
        refuse_others(cls.key, names)
        refuse_repetition(cls.key, names)
        if len({len(one.numbers) for one in stated}) > 1 or not all(
            one.numbers for one in stated
        ):
            raise ValueError("targets must state as many numbers of each client, one or more")
        for one in stated:
            for number in one.numbers:
                values = torch.tensor((number.mean, *number.quantiles))
                if not bool(values.isfinite().all()):
                    raise ValueError(f"targets of {one.party} must be finite in 32 bits")
                if list(number.quantiles) != sorted(number.quantiles):
                    raise ValueError(f"quantiles of {one.party} must be in rising order")
                low, high = number.quantiles[0], number.quantiles[-1]
                slack = ROUNDING * max(abs(low), abs(high))
                if not low - slack <= number.mean <= high + slack:
                    raise ValueError(
                        f"targets of {one.party} have a mean of {number.mean:g}, but their "
                        f"quantiles range from {low:g} to {high:g}: state both in the units "
                        "of the labels"
                    )
        return cls({Party(one.party): one for one in stated})

    def to_json(self) -> tuple[StatedTargets, ...]:
        """Return the distributions of all clients."""
        return tuple(self.stated.values())

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return self.stated.keys()

    def renamed(self, names: Renaming) -> "ClientTargets | None":
        """Return the distributions by new names, if clients keep them over rounds."""
        if not names.keeps_names:
            return None
        return ClientTargets(names.rename_parties(self.stated))

    def means_of(self, target: Party) -> Float[Tensor, " outputs"]:
        """Return the mean of each number; of all clients together for `COHORT`."""
        held = self._held(target)
        weights = torch.tensor([float(one.examples) for one in held], dtype=torch.float64)
        means = torch.tensor([[number.mean for number in one.numbers] for one in held])
        return (weights[:, None] * means.double()).sum(0) / weights.sum()

    def sample_of(
        self, target: Party
    ) -> tuple[Float[Tensor, "outputs points"], Float[Tensor, " points"]]:
        """Return points that stand for the distribution of each number, and their weights."""
        held = self._held(target)
        grids = torch.tensor(
            [[number.quantiles for number in one.numbers] for one in held], dtype=torch.float64
        )  # (clients, outputs, grid)
        ends = torch.ones(GRID, dtype=torch.float64)
        # The ends of the grid stand for half as many examples as the other points.
        ends[0] = ends[-1] = 0.5
        weights = torch.cat([one.examples * ends / ends.sum() for one in held])
        return grids.transpose(0, 1).flatten(1), weights / weights.sum()

    def _held(self, target: Party) -> tuple[StatedTargets, ...]:
        if target == COHORT:
            held = tuple(self.stated.values())
        else:
            held = (self.stated[target],) if target in self.stated else ()
        if not held:
            raise NeedsError(f"the ground truth does not state the numbers of {target}")
        return held


def weighted_quantiles(
    points: Float[Tensor, "outputs points"],
    weights: Float[Tensor, " points"],
    levels: tuple[float, ...],
) -> Float[Tensor, "outputs levels"]:
    """Return quantiles of weighted points: the value below which this part of the weight is.

    Args:
        points: the points of each number.
        weights: their weights, with sum 1.
        levels: from 0 to 1.

    """
    rows = []
    for values in points:
        order = values.argsort()
        middles = weights[order].cumsum(0) - weights[order] / 2
        places = torch.searchsorted(middles, torch.tensor(levels, dtype=torch.float64))
        high = places.clamp(1, len(values) - 1)
        low = high - 1
        step = (middles[high] - middles[low]).clamp(min=1e-12)
        part = ((torch.tensor(levels, dtype=torch.float64) - middles[low]) / step).clamp(0, 1)
        rows.append(values[order][low] * (1 - part) + values[order][high] * part)
    return torch.stack(rows)


def state_targets(party: Party, rows: Float[Tensor, "examples outputs"]) -> StatedTargets:
    """Return what truth.json states of a client with these numbers."""
    values = rows.double()
    grid = torch.linspace(0, 1, GRID, dtype=torch.float64)
    quantiles = values.quantile(grid, 0)  # (grid, outputs)
    return StatedTargets(
        party,
        len(values),
        tuple(
            StatedNumber(float(values[:, place].mean()), tuple(quantiles[:, place].tolist()))
            for place in range(values.shape[1])
        ),
    )
