"""What an attack may claim of whether, when and which way a target's data changed."""

from dataclasses import dataclass
from statistics import NormalDist

from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL, Claim, Interval, Timeline
from overheard.core.errors import ClaimError

_NORMAL = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)


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
