"""The claim about the share of each label among a target's examples."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import Claim, Interval, LearningCurve
from overheard.core.errors import ClaimError

SUM_SLACK = 1e-4
"""Largest rounding error of the sum of shares in float32."""


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """Estimate of the number of examples that a target trained on per round.

    Args:
        examples: the estimate.
        low: lower end of the interval of level `INTERVAL_LEVEL`; None if not stated.
        high: upper end.
        converged: False if the method stopped before its own condition was met.

    """

    examples: float
    low: float | None = None
    high: float | None = None
    converged: bool = True

    def __post_init__(self) -> None:
        """Refuse an invalid size or interval."""
        low = self.examples if self.low is None else self.low
        high = self.examples if self.high is None else self.high
        if not 0 < low <= self.examples <= high < float("inf"):
            raise ClaimError(f"a size must be above 0 and inside its interval, got {self}")


@dataclass(frozen=True, slots=True)
class LabelShares(Claim):
    """The share of each label among the target's examples.

    Args:
        shares: share of each label, 0 or more, with sum 1.
        absent: whether the attack claims that the target holds no example of the label; None if
            it claims nothing on absence (a share of 0 is then only an estimate).
        bounds: interval of each share, with level `INTERVAL_LEVEL` each.
        null_probability: probability, 0..1, that the target holds no example of the label.
        size: number of examples that the target trained on per round.
        reason_for_doubt: why the attack does not trust `bounds`; None if it found no reason or
            does not check.
        own_errors: the attacker's own error by number of virtual clients; None = not measured.
        is_from_sums: whether it was read from sums of several clients. Then what all clients
            have in common is known anyway, and a verdict compares clients with each other.

    """

    shares: Float[Tensor, " classes"]
    absent: Bool[Tensor, " classes"] | None = None
    bounds: Interval | None = None
    null_probability: Float[Tensor, " classes"] | None = None
    size: SizeEstimate | None = None
    reason_for_doubt: str | None = None
    own_errors: LearningCurve | None = None
    is_from_sums: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid shares."""
        numbers = self.shares.tolist()
        # A NaN makes the sum NaN, which fails the comparison.
        if not (abs(sum(numbers) - 1) <= SUM_SLACK and min(numbers) >= 0):
            raise ClaimError(f"label shares must be 0 or more and sum to 1, got {numbers}")
        if self.absent is not None and self.absent.shape != self.shares.shape:
            raise ClaimError("`absent` must have one entry per label")
        if self.bounds is not None and len(self.bounds.low) != len(self.shares):
            raise ClaimError("`bounds` must have one interval per label")
        null = self.null_probability
        if null is not None and not (
            null.shape == self.shares.shape and bool(((null >= 0) & (null <= 1)).all())
        ):
            raise ClaimError(
                f"`null_probability` must be 0 to 1 for each label, got {null.tolist()}"
            )

    def numbers(self) -> tuple[float, ...]:
        """Return the share of each label."""
        return tuple(self.shares.tolist())

    def interval(self) -> Interval | None:
        """Return the interval of each label's share."""
        return self.bounds

    def doubt(self) -> str | None:
        """Return why the attack does not trust its intervals."""
        return self.reason_for_doubt

    def learning_curve(self) -> LearningCurve | None:
        """Return the attacker's own error by number of virtual clients."""
        return self.own_errors
