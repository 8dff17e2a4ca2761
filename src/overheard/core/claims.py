"""What an attack may claim about its target: one class a question."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from statistics import NormalDist

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.errors import ClaimError

SUM_SLACK = 1e-4
"""How far shares in float32 may miss the sum of 1."""

INTERVAL_LEVEL = 0.9
"""The chance with which an interval is meant to hold the true number."""

_NORMAL = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)


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


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """How many examples a target trained on in a round.

    Args:
        examples: the estimate.
        low: lower end of the interval of `INTERVAL_LEVEL`; None = unsaid.
        high: upper end.
        converged: False where the method stopped without having met its own condition.

    """

    examples: float
    low: float | None = None
    high: float | None = None
    converged: bool = True

    def __post_init__(self) -> None:
        """Refuse a size that is none."""
        low = self.examples if self.low is None else self.low
        high = self.examples if self.high is None else self.high
        if not 0 < low <= self.examples <= high < float("inf"):
            raise ClaimError(f"a size is above 0 and inside its interval, got {self}")


@dataclass(frozen=True, slots=True)
class LabelShares(Claim):
    """Which share of the target's examples bears each label.

    Args:
        shares: each 0 or more, 1 together.
        absent: labels that the attack says the target does not hold at all; None where the
            attack makes no such statement (a share of 0 is then an estimate, no verdict).
        bounds: where each share lies, label by label, with a chance of `INTERVAL_LEVEL` each.
        null_probability: the chance, 0..1, that the target does not hold the label.
        size: how many examples the target trained on in a round.

    """

    shares: Float[Tensor, " classes"]
    absent: Bool[Tensor, " classes"] | None = None
    bounds: Interval | None = None
    null_probability: Float[Tensor, " classes"] | None = None
    size: SizeEstimate | None = None

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        total = float(self.shares.sum())
        # A NaN fails both comparisons, so it is refused too.
        if not (bool((self.shares >= 0).all()) and abs(total - 1) <= SUM_SLACK):
            raise ClaimError(
                f"label shares must be 0 or more and sum to 1, got {self.shares.tolist()}"
            )
        if self.absent is not None and self.absent.shape != self.shares.shape:
            raise ClaimError("`absent` must say one thing a label")
        if self.bounds is not None and len(self.bounds.low) != len(self.shares):
            raise ClaimError("`bounds` must bound each label's share")
        chances = self.null_probability
        if chances is not None and not (
            chances.shape == self.shares.shape and bool(((chances >= 0) & (chances <= 1)).all())
        ):
            raise ClaimError(f"a null probability a label, 0 to 1, got {chances.tolist()}")

    def numbers(self) -> tuple[float, ...]:
        """The share of each label."""
        return tuple(self.shares.tolist())

    def interval(self) -> Interval | None:
        """The bounds of each label's share."""
        return self.bounds


@dataclass(frozen=True, slots=True)
class Measured:
    """A number a label, and how far it may be off.

    Args:
        value: the estimate.
        covariance: of its error, so that a sum over labels has an error too.

    """

    value: Float[Tensor, " classes"]
    covariance: Float[Tensor, "classes classes"]

    def __post_init__(self) -> None:
        """Refuse what is no estimate."""
        finite = self.value.isfinite().all() and self.covariance.isfinite().all()
        if not bool(finite) or bool((self.covariance.diagonal() < 0).any()):
            raise ClaimError(
                f"an estimate is finite and its variances 0 or more, got {self.value.tolist()}"
            )

    def interval(self) -> Interval:
        """The normal interval of each number, at `INTERVAL_LEVEL`."""
        half = _NORMAL * self.covariance.diagonal().sqrt()
        return Interval(
            tuple((self.value - half).tolist()), tuple((self.value + half).tolist())
        )

    def total(self, labels: Bool[Tensor, " classes"]) -> tuple[float, float, float]:
        """The sum over some labels, and the ends of its normal interval."""
        chosen = labels.to(self.value.dtype)
        total = float(self.value @ chosen)
        half = _NORMAL * max(0.0, float(chosen @ self.covariance @ chosen)) ** 0.5
        return total, total - half, total + half


@dataclass(frozen=True, slots=True)
class Shift(Claim):
    """Whether a target's data changed during the run, since when, and which way.

    Args:
        evidence: round by round, with the alarm and the guess at the round of the change.
        change: label shares since the change minus those before; None = not told.
        after: label shares since the change; None = not told.

    """

    evidence: Timeline
    change: Measured | None = None
    after: Measured | None = None

    def __post_init__(self) -> None:
        """Refuse a change that is told of other labels than the shares."""
        told = [part for part in (self.change, self.after) if part is not None]
        if len({len(part.value) for part in told}) > 1:
            raise ClaimError("`change` and `after` must speak of the same labels")

    def numbers(self) -> tuple[float, ...]:
        """The change of each label's share; none where it is not told."""
        return () if self.change is None else tuple(self.change.value.tolist())

    def interval(self) -> Interval | None:
        """Where the change of each label's share lies."""
        return None if self.change is None else self.change.interval()

    def timeline(self) -> Timeline:
        """The evidence."""
        return self.evidence


def normalised(weights: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """Turn weights into shares: negative ones count as 0; none at all means all alike."""
    clipped = weights.double().clamp(min=0)
    total = clipped.sum()
    if not bool(total > 0):
        return torch.full_like(weights, 1 / len(weights))
    return (clipped / total).to(weights.dtype)
