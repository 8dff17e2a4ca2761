"""What an attack may claim of which share of a target's examples bears each label."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import Claim, Interval
from overheard.core.errors import ClaimError

SUM_SLACK = 1e-4
"""How far shares in float32 may miss the sum of 1."""


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
