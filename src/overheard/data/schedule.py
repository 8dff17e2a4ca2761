"""When clients exchange their examples for fresh ones, and when their composition shifts."""

from dataclasses import dataclass

from overheard.core.errors import PlanError
from overheard.data.composition import shares_of


@dataclass(frozen=True, slots=True)
class Shift:
    """From a round on, a client holds fresh examples, as many as before, of other labels.

    Args:
        client: its number, from 0.
        round: the first round with the new examples, from 0.
        shares: of each label from then on; None = as before: fresh examples and no shift, the
            control beside each shift.

    """

    client: int
    round: int
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a shift that changes nothing or cannot be."""
        if self.client < 0:
            raise PlanError(f"a shift needs a client numbered from 0, got {self.client}")
        if self.round < 1:
            raise PlanError(
                f"a shift comes in round 1 or later, got {self.round}: what a client holds in "
                "round 0 is the split's to say"
            )
        if self.shares is not None:
            shares_of(self.shares, f"the shares of client {self.client} from {self.round}")


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a run lasts, and when clients exchange their examples.

    Args:
        rounds: numbered from 0.
        refresh_every: in every round whose number divides by this, but 0, each client gets
            fresh examples of the same composition; None = never.
        shifts: exchanges that change what a client holds.

    """

    rounds: int
    refresh_every: int | None = None
    shifts: tuple[Shift, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rounds that there are not."""
        if self.rounds < 1:
            raise PlanError(f"a run lasts 1 round or more, got {self.rounds}")
        if self.refresh_every is not None and self.refresh_every < 1:
            raise PlanError(f"refresh_every must be 1 or more, got {self.refresh_every}")
        for shift in self.shifts:
            if shift.round >= self.rounds:
                raise PlanError(
                    f"client {shift.client} shifts in round {shift.round}, but rounds are "
                    f"numbered from 0 to {self.rounds - 1}"
                )
        places = [(shift.client, shift.round) for shift in self.shifts]
        if len(set(places)) != len(places):
            raise PlanError("a client shifts once a round at most: drop one of the two shifts")

    def refreshes(self, number: int) -> bool:
        """Whether every client gets fresh examples in this round."""
        if self.refresh_every is None or number == 0:
            return False
        return number % self.refresh_every == 0
