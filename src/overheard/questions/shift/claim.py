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

    Args:
        value: the estimate.
        covariance: the covariance of its errors.

    """

    value: Float[Tensor, " classes"]
    covariance: Float[Tensor, "classes classes"]

    def __post_init__(self) -> None:
        """Refuse non-finite values and negative variances."""
        finite = self.value.isfinite().all() and self.covariance.isfinite().all()
        if not bool(finite) or bool((self.covariance.diagonal() < 0).any()):
            raise ClaimError(
                "an estimate must be finite with variances of 0 or more, got "
                f"{self.value.tolist()}"
            )

    def interval(self) -> Interval:
        """Return the normal interval of each number, at `INTERVAL_LEVEL`."""
        half = _NORMAL * self.covariance.diagonal().sqrt()
        return Interval(
            tuple((self.value - half).tolist()), tuple((self.value + half).tolist())
        )

    def sum_over(self, labels: Bool[Tensor, " classes"]) -> tuple[float, float, float]:
        """Return the sum over some labels, and the ends of its normal interval."""
        selected = labels.to(self.value.dtype)
        total = float(self.value @ selected)
        half = _NORMAL * max(0.0, float(selected @ self.covariance @ selected)) ** 0.5
        return total, total - half, total + half


@dataclass(frozen=True, slots=True)
class Shift(Claim):
    """Whether a target's data changed during the run, since when, and in which direction.

    Args:
        evidence: the evidence by round, with the alarm, which rests on the rounds up to it, and
            the claimed round of the change, which rests on all rounds.
        change: label shares after the change minus those before; None = not claimed.
        shares_after: label shares after the change; None = not claimed.

    """

    evidence: Timeline
    change: GaussianEstimate | None = None
    shares_after: GaussianEstimate | None = None

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
