"""The claim about the distribution of the numbers to predict among a target's examples."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, Interval
from overheard.core.errors import ClaimError

LEVELS = (0.1, 0.5, 0.9)
"""The levels of the claimed quantiles."""


@dataclass(frozen=True, slots=True)
class TargetDistribution(Claim):
    """Mean and quantiles of each number to predict, over the target's examples.

    Where several labels may apply, the mean of a label is the share of examples to which it
    applies, and there are no quantiles. Numbers are in the units of the labels.

    Args:
        means: the mean of each number.
        quantiles: its quantiles at `LEVELS`; None = not claimed.
        deviations: the standard deviation of each number among the attacker's examples, in
            which errors are measured.
        bounds: an interval of each of `numbers()`, at level `INTERVAL_LEVEL`; None = not
            claimed.

    """

    means: Float[Tensor, " outputs"]
    quantiles: Float[Tensor, "outputs levels"] | None
    deviations: Float[Tensor, " outputs"]
    bounds: Interval | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that are not finite or do not fit one another."""
        parts = [self.means, self.deviations]
        parts += [] if self.quantiles is None else [self.quantiles]
        if not all(bool(one.isfinite().all()) for one in parts):
            raise ClaimError("means, quantiles and deviations must be finite")
        if self.deviations.shape != self.means.shape or not bool((self.deviations > 0).all()):
            raise ClaimError("deviations must be above 0, one for each mean")
        if self.quantiles is not None and self.quantiles.shape != (
            len(self.means),
            len(LEVELS),
        ):
            raise ClaimError(f"each number needs {len(LEVELS)} quantiles")
        if self.bounds is not None and len(self.bounds.low) != len(self.numbers()):
            raise ClaimError("`bounds` must have one interval for each number of the claim")

    def numbers(self) -> tuple[float, ...]:
        """Return for each number to predict its mean, then its quantiles."""
        rows = self.means[:, None].tolist()
        if self.quantiles is not None:
            rows = [mean + own for mean, own in zip(rows, self.quantiles.tolist(), strict=True)]
        return tuple(number for row in rows for number in row)

    def interval(self) -> Interval | None:
        """Return the interval of each number."""
        return self.bounds
