"""The base class of claims about a target; each question has its own subclass."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite

from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import ClaimError

INTERVAL_LEVEL = 0.9
"""The nominal coverage of a claim's intervals."""


class Claim(ABC):
    """What an attack infers about a target; the subclass determines the question.

    A subclass is a frozen dataclass of numbers, texts, tensors, tuples, mappings and other such
    dataclasses. Claims are stored and read by the types of the fields.
    """

    __slots__ = ()

    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """Return the claim as plain numbers, for findings and charts.

        The claim, the true claim and all guesses give them in one order. A joint claim with a
        number for each target gives them in the order of the targets that `Attack.infer` gets,
        which findings list, too. It has the targets as a field, so that the scorer knows them.
        """

    def interval(self) -> "Interval | None":
        """Return an interval for each number, at level `INTERVAL_LEVEL`; None = not given."""
        return None

    def timeline(self) -> "Timeline | None":
        """Return the evidence round by round; None where the question is not about time."""
        return None

    def candidates(self) -> tuple[str, ...]:
        """Return the candidate that each number scores.

        () if the question does not choose among candidates.
        """
        return ()

    def unknown_probability(self) -> float | None:
        """Return the probability that no candidate is the true one; None = not given."""
        return None

    def pictures(self) -> tuple["Picture", ...]:
        """Return the pictures that the claim shows, such as reconstructed examples; () = none.

        What they are made of is in the fields of the claim, and so stored with it. They are
        drawn only where a plan asks for it, and leave the folder of an audit with no command.
        """
        return ()

    def strengths(self) -> tuple[float, ...]:
        """Return how far each number could stand out at most; () = not known.

        In standard deviations of numbers for which there is nothing to find, and from what the
        attacker knows, without the ground truth.
        """
        return ()

    def doubt(self) -> str | None:
        """Return why the attack does not trust its own intervals; None = it found no reason.

        The reason follows from what the attacker sees, without the ground truth.
        """
        return None

    def learning_curve(self) -> "LearningCurve | None":
        """Return the attacker's own error by number of virtual clients; None = not measured."""
        return None


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """An attacker's own error by number of virtual clients, and how many it trained.

    The error is that of virtual clients on which the estimator was not trained, so it uses
    nothing but the attacker's knowledge.

    Args:
        clients: numbers of virtual clients with a measured error, in rising order.
        errors: their mean errors, L1 in 0..2.
        trained: the number of virtual clients behind the claim.
        planned: the largest number.

    """

    clients: tuple[int, ...]
    errors: tuple[float, ...]
    trained: int
    planned: int

    def __post_init__(self) -> None:
        """Check that each number has one error, and that no more were trained than planned."""
        if len(self.clients) != len(self.errors) or self.trained > self.planned:
            raise ClaimError(f"a learning curve needs one error for each number, got {self}")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Evidence of a change, round by round.

    Statistic, threshold and alarm are *online*: those of a round use the rounds up to it alone,
    as if the run ended there. `since` is *retrospective*: it uses all rounds.

    Args:
        rounds: rounds with a statistic, in order; a change can only be detected in these.
        statistic: one per round, larger = more evidence of a change up to that round.
        threshold: one per round; a larger statistic raises an alarm; None = not stated.
        false_alarm_rate: probability (0..1) of any alarm in a run without a change, as the
            method states it; None = not stated. With a rate and no threshold, the method is not
            calibrated here: it cannot keep the rate, and gives no alarm.
        alarm: round of the first alarm; None = no alarm.
        since: best estimate, looking back from the last round, of the first round with the new
            data, with or without an alarm; None = no estimate.

    """

    rounds: tuple[int, ...] = ()
    statistic: tuple[float, ...] = ()
    threshold: tuple[float, ...] | None = None
    false_alarm_rate: float | None = None
    alarm: int | None = None
    since: int | None = None

    @property
    def is_uncalibrated(self) -> bool:
        """Whether the method gives no alarm, as it cannot keep the rate that it states."""
        return self.false_alarm_rate is not None and self.threshold is None

    def __post_init__(self) -> None:
        """Check that each round has one finite statistic, and that the alarm is among them."""
        if list(self.rounds) != sorted(set(self.rounds)):
            raise ClaimError(f"rounds must be in order and distinct, got {self.rounds}")
        columns = (self.statistic, self.threshold or self.statistic)
        if any(len(column) != len(self.rounds) for column in columns):
            raise ClaimError("a timeline needs one statistic and one threshold per round")
        if not all(map(isfinite, self.statistic)):
            raise ClaimError(f"statistics must be finite, got {self.statistic}")
        rate = self.false_alarm_rate
        if rate is not None and not 0 <= rate <= 1:
            raise ClaimError(f"a false alarm rate must be between 0 and 1, got {rate}")
        if self.alarm is not None and self.alarm not in self.rounds:
            raise ClaimError(f"the alarm's round {self.alarm} is not among {self.rounds}")


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper ends of the interval of each number of a claim."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that each lower end is at most the upper end."""
        if len(self.low) != len(self.high) or not all(map(float.__le__, self.low, self.high)):
            raise ClaimError(f"intervals need low <= high, got {self.low}, {self.high}")


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture that a claim shows.

    Args:
        name: what it shows.
        pixels: the brightness (0..1) of one channel, or of red, green and blue.

    """

    name: str
    pixels: Float[Tensor, "channels height width"]

    def __post_init__(self) -> None:
        """Check the number of channels and the brightness."""
        pixels = self.pixels
        if pixels.ndim != 3 or pixels.shape[0] not in (1, 3) or pixels.numel() == 0:
            shape = tuple(pixels.shape)
            raise ClaimError(f"a picture has 1 or 3 channels, rows and columns, got {shape}")
        if not bool(((pixels >= 0) & (pixels <= 1)).all()):
            raise ClaimError(f"the picture {self.name!r} has a brightness outside of 0 to 1")


def check_candidates(candidates: tuple[str, ...], scores: Float[Tensor, " candidates"]) -> None:
    """Raise `ClaimError` unless candidates are distinct and each has one finite score."""
    if not candidates or len(set(candidates)) < len(candidates):
        raise ClaimError(f"candidates must be distinct, one or more, got {candidates}")
    # A NaN has no rank.
    if scores.shape != (len(candidates),) or not bool(scores.isfinite().all()):
        raise ClaimError(f"each candidate needs one finite score, got {scores.tolist()}")
