"""When clients exchange their examples for fresh ones, and when these shift in kind."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from overheard.core.errors import PlanError
from overheard.data.partition.composition import shares_of, weights_of
from overheard.data.positive import Positive

MOST_CLIENTS = 1_000_000
"""More than any data set could be shared out among; the list of them would fill the memory."""


@dataclass(frozen=True, slots=True)
class DataShift:
    """From a round on, a client holds fresh examples, as many as before, of another kind.

    What is left out stays as it is. With nothing but the client and the round it is an
    exchange: fresh examples of the same kind, the control beside each shift.

    Args:
        client: its number, from 0.
        round: the first round with new examples, 1 or later.
        shares: of each label from then on, whatever they were before.
        weights: one a label; the shares that the client holds are multiplied by these and
            rescaled, so that (3, 2) makes 60 to 40 of what was even.
        over: rounds that the exchange takes: in each of them one `over`-th of what the client
            held is exchanged, so that in round `round + over - 1` all is new. 1 = at once.
        distortion: from then on inputs are seen by another instrument (`data.distortion`), at
            this strength, 0..1; labels stay as they are. 0 = as the data set has them.
        new_user: from then on the examples are those of a user whom no client has been.

    """

    client: Annotated[int, Field(ge=0, lt=MOST_CLIENTS)]
    round: Positive
    shares: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None
    over: Positive = 1
    distortion: Annotated[float, Field(ge=0, le=1)] | None = None
    new_user: bool = False

    def __post_init__(self) -> None:
        """Refuse a shift that cannot be."""
        if self.client < 0:
            raise PlanError(f"a shift needs a client numbered from 0, got {self.client}")
        if self.round < 1:
            raise PlanError(
                f"a shift comes in round 1 or later, got {self.round}: what a client holds in "
                "round 0 is the split's to say"
            )
        if self.over < 1:
            raise PlanError(f"{self._place}: over is 1 round or more, got {self.over}")
        if self.distortion is not None and not 0 <= self.distortion <= 1:
            raise PlanError(f"{self._place}: distortion lies in 0..1, got {self.distortion}")
        if self.weights is not None and (self.shares is not None or self.new_user):
            raise PlanError(
                f"{self._place}: weights change the shares that the client holds: give them "
                "without shares and new_user"
            )
        if self.shares is not None:
            shares_of(self.shares, f"{self._place}: the shares")
        if self.weights is not None:
            weights_of(self.weights, f"{self._place}: the weights")

    @property
    def last(self) -> int:
        """The round from which on all examples are new."""
        return self.round + self.over - 1

    @property
    def is_exchange(self) -> bool:
        """True if the kind of the examples is to stay as it is."""
        told = (self.shares, self.weights)
        return told == (None, None) and not self.distortion and not self.new_user

    @property
    def _place(self) -> str:
        return f"the shift of client {self.client} in round {self.round}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a run lasts, and when clients exchange their examples.

    Args:
        rounds: numbered from 0.
        refresh_every: in every round whose number divides by this, but 0, each client gets
            fresh examples of the same composition and look, unless a shift of its own is
            under way; None = never.
        shifts: exchanges that change what a client holds.

    """

    rounds: int
    refresh_every: int | None = None
    shifts: tuple[DataShift, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rounds that there are not."""
        if self.rounds < 1:
            raise PlanError(f"a run lasts 1 round or more, got {self.rounds}")
        if self.refresh_every is not None and self.refresh_every < 1:
            raise PlanError(f"refresh_every must be 1 or more, got {self.refresh_every}")
        for shift in self.shifts:
            if shift.last >= self.rounds:
                raise PlanError(
                    f"client {shift.client} shifts in round {shift.last}, but rounds are "
                    f"numbered from 0 to {self.rounds - 1}"
                )
        ordered = sorted(self.shifts, key=lambda shift: (shift.client, shift.round))
        for earlier, later in pairwise(ordered):
            if earlier.client == later.client and later.round <= earlier.last:
                raise PlanError(
                    f"client {later.client} shifts once a round at most, and not again while "
                    f"a shift is under way: drop one of rounds {earlier.round} and "
                    f"{later.round}, or make the first take fewer rounds"
                )

    def refreshes(self, number: int) -> bool:
        """Whether every client gets fresh examples in this round."""
        if self.refresh_every is None or number == 0:
            return False
        return number % self.refresh_every == 0

    def starting(self, number: int) -> dict[int, DataShift]:
        """The shifts that begin in this round, by client."""
        return {shift.client: shift for shift in self.shifts if shift.round == number}

    def control(self) -> "Schedule":
        """The same exchanges of the same clients in the same rounds, of which none shifts."""
        exchanges = (
            DataShift(shift.client, shift.round, over=shift.over) for shift in self.shifts
        )
        return Schedule(self.rounds, self.refresh_every, tuple(exchanges))
