"""What all claims about a target have in common; each question has its class of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite

from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import ClaimError

INTERVAL_LEVEL = 0.9
"""The chance with which an interval is meant to hold the true number."""


class Claim(ABC):
    """An answer to one question about a target; its class names the question."""

    __slots__ = ()

    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """The claim as plain numbers, for a record or a chart."""

    def interval(self) -> "Interval | None":
        """Where each of the numbers lies with a chance of `INTERVAL_LEVEL`; None = unsaid."""
        return None

    def timeline(self) -> "Timeline | None":
        """How the evidence went, round by round; None where the question has no time."""
        return None

    def candidates(self) -> tuple[str, ...]:
        """What each of the numbers speaks for, where the question is a choice; () elsewhere."""
        return ()

    def none_of_them(self) -> float | None:
        """The chance that it is none of the candidates; None = unsaid."""
        return None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Evidence, round by round, that something changed.

    Args:
        rounds: those at which there is a statistic, in order; a change can be told in no other.
        statistic: one a round, larger = more evidence of a change by then.
        threshold: one a round: a statistic above it raises the alarm; None = none is stated.
        false_alarm_rate: the chance, 0..1, that a run in which nothing changed raises any
            alarm, as the method states it; None = none is stated.
        alarm: the round at which the alarm was raised first; None = it was not.
        since: the first round in which the new data were used, at best guess, alarm or not;
            None = no guess.

    """

    rounds: tuple[int, ...] = ()
    statistic: tuple[float, ...] = ()
    threshold: tuple[float, ...] | None = None
    false_alarm_rate: float | None = None
    alarm: int | None = None
    since: int | None = None

    def __post_init__(self) -> None:
        """Refuse evidence that tells of no round, and alarms that nothing raised."""
        if list(self.rounds) != sorted(set(self.rounds)):
            raise ClaimError(f"rounds in order, each once, got {self.rounds}")
        columns = (self.statistic, self.threshold or self.statistic)
        if any(len(column) != len(self.rounds) for column in columns):
            raise ClaimError("a timeline has one statistic, and one threshold, a round")
        if not all(map(isfinite, self.statistic)):
            raise ClaimError(f"a statistic is a finite number, got {self.statistic}")
        rate = self.false_alarm_rate
        if rate is not None and not 0 <= rate <= 1:
            raise ClaimError(f"a false-alarm rate lies between 0 and 1, got {rate}")
        if self.alarm is not None and self.alarm not in self.rounds:
            raise ClaimError(f"the alarm of round {self.alarm} is not among {self.rounds}")


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends between which each number of a claim is said to lie."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse ends that are none."""
        if len(self.low) != len(self.high) or not all(map(float.__le__, self.low, self.high)):
            raise ClaimError(f"an interval runs from low to high, got {self.low}, {self.high}")


def check_choice(candidates: tuple[str, ...], scores: Float[Tensor, " candidates"]) -> None:
    """Raise `ClaimError` unless there are candidates, each once, with one finite score each."""
    if not candidates or len(set(candidates)) < len(candidates):
        raise ClaimError(f"a choice is among different candidates, one or more: {candidates}")
    # A NaN has no rank.
    if scores.shape != (len(candidates),) or not bool(scores.isfinite().all()):
        raise ClaimError(f"one finite score a candidate, got {scores.tolist()}")
