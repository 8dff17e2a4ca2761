"""What an attack may claim of whether records were trained on."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError


@dataclass(frozen=True, slots=True)
class Membership(Claim):
    """Which of the records in question the target trained on.

    Args:
        scores: evidence that it did, one a record in the order in which they are asked about;
            larger = more likely, above 0 = it did, where the attack takes both to be equally
            likely beforehand.

    """

    scores: Float[Tensor, " records"]

    def __post_init__(self) -> None:
        """Refuse what is said of nothing."""
        if not len(self.scores) or not bool(self.scores.isfinite().all()):
            raise ClaimError("membership is claimed of a record or more, by finite numbers")

    def numbers(self) -> tuple[float, ...]:
        """The score of each record, to the digits that it has: findings tell thousands."""
        return tuple(float(str(score)) for score in self.scores.numpy())
