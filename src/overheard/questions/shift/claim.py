"""The claim about whether, when and how a target's data changed."""

from dataclasses import dataclass
from statistics import NormalDist

from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL, Claim, Interval, Timeline
from overheard.core.errors import ClaimError

_NORMAL = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)


@dataclass(frozen=True, slots=True)
class GaussianEstimate:
    """An estimate of one number per label, with normal errors.

    Errors of a sum over few labels and over many may have longer tails than the normal
    distribution, each its own; then intervals are widened by factors.

    Args:
        value: the estimate.
        covariance: the covariance of its errors.
        widening: factors on the intervals of sums over 1, 2, ... labels, up to half of them. A
            sum over more has the factor of the labels that are left. () = no factors.

    """

    value: Float[Tensor, " classes"]
    covariance: Float[Tensor, "classes classes"]
    widening: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse non-finite values and negative variances."""
        finite = self.value.isfinite().all() and self.covariance.isfinite().all()
        if not bool(finite) or bool((self.covariance.diagonal() < 0).any()):
            raise ClaimError(
                "an estimate must be finite with variances of 0 or more, got "
                f"{self.value.tolist()}"
            )
        if self.widening and (
            len(self.widening) != max(1, len(self.value) // 2)
            or not all(0 <= factor < float("inf") for factor in self.widening)
        ):
            raise ClaimError(
                "`widening` must have a factor of 0 or more for each number of labels up to "
                f"half of {len(self.value)}, got {self.widening}"
            )

    def interval(self) -> Interval:
        """Return the interval of each number, at `INTERVAL_LEVEL`."""
        half = self._quantile(1) * self.covariance.diagonal().sqrt()
        return Interval(
            tuple((self.value - half).tolist()), tuple((self.value + half).tolist())
        )

    def sum_over(self, labels: Bool[Tensor, " classes"]) -> tuple[float, float, float]:
        """Return the sum over some labels, and the ends of its interval."""
        selected = labels.to(self.value.dtype)
        total = float(self.value @ selected)
        variance = max(0.0, float(selected @ self.covariance @ selected))
        half = self._quantile(int(labels.sum())) * variance**0.5
        return total, total - half, total + half

    def _quantile(self, count: int) -> float:
        """Return half an interval of a sum over this many labels, in standard deviations."""
        if not self.widening:
            return _NORMAL
        fewer = max(1, min(count, len(self.value) - count))
        return _NORMAL * self.widening[fewer - 1]


@dataclass(frozen=True, slots=True)
class Shift(Claim):
    """Whether a target's data changed during the run, since when, and in which direction.

    Args:
        evidence: the evidence by round, with the alarm, which rests on the rounds up to it, and
            the claimed round of the change, which rests on all rounds.
        change: label shares after the change minus those before; None = not claimed.
        shares_after: label shares after the change; None = not claimed.
        reason_for_doubt: why the attack does not trust the intervals of both; None if it found
            no reason or does not check.

    """

    evidence: Timeline
    change: GaussianEstimate | None = None
    shares_after: GaussianEstimate | None = None
    reason_for_doubt: str | None = None

    def __post_init__(self) -> None:
        """Refuse a change and shares with different numbers of labels."""
        claimed = [part for part in (self.change, self.shares_after) if part is not None]
        if len({len(part.value) for part in claimed}) > 1:
            raise ClaimError("the change and the shares after it must cover the same labels")

    def numbers(self) -> tuple[float, ...]:
        """Return the change of each label's share; empty if not claimed."""
        return () if self.change is None else tuple(self.change.value.tolist())

    def interval(self) -> Interval | None:
        """Return the interval of the change of each label's share."""
        return None if self.change is None else self.change.interval()

    def timeline(self) -> Timeline:
        """Return the evidence."""
        return self.evidence

    def doubt(self) -> str | None:
        """Return why the attack does not trust its own intervals."""
        return self.reason_for_doubt
