"""When clients replace their examples, and when their distributions shift."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Settings, Share

MAX_CLIENTS = 1_000_000
"""More clients than any data set has examples for; listing them would fill the memory."""

SUM_TOLERANCE = 0.01
"""How far the sum of rounded shares may differ from 1 (percentages: 1 from 100)."""

Draws = Literal["natural", "exact"]
"""How the label counts of new examples are decided.

"natural": a multinomial draw of the label shares that the client draws from, as when new data
come in. "exact": the counts that the client held are copied.
"""


@dataclass(frozen=True, slots=True)
class DataShift(Settings):
    """A distribution shift: fresh examples, as many as before, replace those of a client.

    Properties that are not given do not change. With only a client and a round, fresh examples
    of the same distribution replace the old ones: the control of a shift.

    Args:
        client: its number, from 0.
        round: the first round with new examples, 1 or later.
        shares: the label shares after the shift.
        weights: one per label. The client's label shares are multiplied by these and rescaled,
            so (3, 2) turns equal shares into 60 to 40.
        over: the number of rounds that the exchange takes. In each, one `over`-th of the old
            examples is replaced; from round `round + over - 1` on, all are new. 1 = at once.
        distortion: inputs are distorted (`data.distortion`) at this strength, 0..1, and labels
            do not change. 0 = not distorted.
        new_user: the new examples are those of a user whom no client has been before.

    """

    client: Annotated[int, Ge(0), Lt(MAX_CLIENTS)]
    round: Positive
    shares: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None
    over: Positive = 1
    distortion: Share | None = None
    new_user: bool = False

    def check_together(self) -> None:
        """Refuse settings that exclude each other."""
        if self.weights is not None and (self.shares is not None or self.new_user):
            raise PlanError(
                f"{self.description}: weights rescale the shares that the client holds, so "
                "they cannot be combined with shares or new_user: leave out one of them"
            )
        # Reading them checks them.
        _ = self.shares_after, self.factors

    @property
    def shares_after(self) -> Float[Tensor, " classes"] | None:
        """The label shares after the shift, with sum 1; None = they are not given."""
        if self.shares is None:
            return None
        return normalised_shares(self.shares, f"{self.description}: the shares")

    @property
    def factors(self) -> Float[Tensor, " classes"] | None:
        """What the label shares are multiplied by; None = they are not."""
        if self.weights is None:
            return None
        return checked_weights(self.weights, f"{self.description}: the weights")

    @property
    def last_round(self) -> int:
        """The first round in which all examples are new."""
        return self.round + self.over - 1

    @property
    def is_refresh(self) -> bool:
        """Whether the distribution of the examples stays the same."""
        has_new_labels = self.shares is not None or self.weights is not None
        return not has_new_labels and not self.distortion and not self.new_user

    @property
    def description(self) -> str:
        """The client and the round, for error messages."""
        return f"the shift of client {self.client} in round {self.round}"


@dataclass(frozen=True, slots=True)
class RoundExchanges:
    """The exchanges of one round.

    Args:
        starting: the shifts that start, by client.
        is_refresh: whether all clients get fresh examples, but those in the middle of a shift.
        seed: the seed of their draws.

    """

    starting: Mapping[int, DataShift]
    is_refresh: bool
    seed: Seed


@dataclass(frozen=True, slots=True)
class Schedule(Settings):
    """The rounds in which clients replace their examples by new ones (an exchange).

    Args:
        rounds: the number of rounds.
        refresh_every: rounds between refreshes. In each round that is a multiple of this, but
            0, clients get fresh examples of the same distribution, distorted in the same way. A
            client in the middle of a shift is left out. None = never.
        shifts: exchanges that change the distribution of a client's data.
        draws: how the label counts of new examples are decided.
        first_draws: the same for the examples of round 0. "exact" = those of the split.
        own_draws: which draws decide the exchanges from round `own_draws_from` on: 0 = those of
            the planned run, another number = draws of their own.
        own_draws_from: the round of the first of these exchanges.

    """

    rounds: Positive
    refresh_every: Positive | None = None
    shifts: tuple[DataShift, ...] = ()
    draws: Draws = "exact"
    first_draws: Draws = "exact"
    own_draws: int = 0
    own_draws_from: int = 0

    def check_together(self) -> None:
        """Refuse shifts after the last round, and shifts of a client that overlap."""
        for shift in self.shifts:
            if shift.last_round >= self.rounds:
                raise PlanError(
                    f"client {shift.client} shifts in round {shift.last_round}, but rounds are "
                    f"numbered from 0 to {self.rounds - 1}: shift earlier, or run more rounds"
                )
        ordered = sorted(self.shifts, key=lambda shift: (shift.client, shift.round))
        for earlier, later in pairwise(ordered):
            if earlier.client == later.client and later.round <= earlier.last_round:
                raise PlanError(
                    f"client {later.client} has overlapping shifts in rounds {earlier.round} "
                    f"and {later.round}: drop one of them, or make the first take fewer rounds"
                )

    def by_round(self, seed: Seed) -> tuple["RoundExchanges", ...]:
        """Return the exchanges of each round, with seeds below this one; round 0 has none."""
        seeds = [seed.child("round", number) for number in range(self.rounds)]
        if self.own_draws:
            own = slice(self.own_draws_from, None)
            seeds[own] = [one.child("control", self.own_draws) for one in seeds[own]]
        return tuple(
            RoundExchanges(
                {shift.client: shift for shift in self.shifts if shift.round == number},
                bool(number and self.refresh_every and number % self.refresh_every == 0),
                round_seed,
            )
            for number, round_seed in enumerate(seeds)
        )

    @property
    def has_exchanges(self) -> bool:
        """Whether any client replaces examples."""
        return bool(self.shifts) or self.refresh_every is not None

    def control(self, draws: Draws, number: int = 0) -> "Schedule":
        """Return the same exchanges in the same rounds, without any change of distribution.

        A control has the examples of the planned run before the first shift, as far as both
        have the same kind of draws. From then on a natural control has draws of its own. Where
        a shift has no effect, the planned run and its natural controls are therefore
        exchangeable.

        Args:
            draws: how the label counts of new examples are decided.
            number: the number of the control among those of its kind, from 0.

        """
        exchanges = tuple(
            DataShift(shift.client, shift.round, over=shift.over) for shift in self.shifts
        )
        return replace(
            self,
            shifts=exchanges,
            draws=draws,
            # An exact control whose draws are those of the planned run replaces the same rows.
            own_draws=number + (draws == "natural"),
            own_draws_from=min(
                (shift.round for shift in self.shifts if not shift.is_refresh), default=0
            ),
        )


def normalised_shares(numbers: Sequence[float], place: str) -> Float[Tensor, " classes"]:
    """Return these shares or percentages, scaled to sum to 1.

    Args:
        numbers: 0 or more each, with a sum of 1 or 100, give or take 1 %.
        place: where they come from, for the error message.

    Raises:
        PlanError: if they are neither shares nor percentages.

    """
    total = math.fsum(numbers)
    # NaN fails every comparison, so it is refused too.
    is_normalised = any(
        abs(total / expected - 1) <= SUM_TOLERANCE + 1e-9 for expected in (1, 100)
    )
    if not is_normalised or not all(number >= 0 for number in numbers):
        raise PlanError(
            f"{place} must be 0 or more each and sum to 1 or to 100, got {tuple(numbers)} "
            f"with sum {total:g}"
        )
    return torch.tensor([number / total for number in numbers], dtype=torch.float64)


def checked_weights(numbers: Sequence[float], place: str) -> Float[Tensor, " classes"]:
    """Return these label weights as a tensor; shares are multiplied by them.

    Args:
        numbers: 0 or more each, not all 0.
        place: where they come from, for the error message.

    Raises:
        PlanError: if they are not valid weights.

    """
    if not all(0 <= number < math.inf for number in numbers) or not any(numbers):
        raise PlanError(
            f"{place} must be 0 or more each and not all 0, got {tuple(numbers)}: give one "
            "weight per label, 1 for a label whose relative frequency is to stay"
        )
    return torch.tensor(numbers, dtype=torch.float64)
