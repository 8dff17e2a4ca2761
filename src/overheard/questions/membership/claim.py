"""The claim about which records a target trained on."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError


@dataclass(frozen=True, slots=True)
class Membership(Claim):
    """Which of the candidate records the target trained on.

    Args:
        scores: evidence of membership, one per candidate record in order. Larger = more likely;
            above 0 = claimed as a member, given equal prior probabilities.
        labels: the class of each record, by which scores are compared within labels. Uninformed
            guesses have it; None = claims of attacks, or a task without classes.
        strength: how many standard deviations above non-members each record could be at most;
            None = the attack does not know.

    """

    scores: Float[Tensor, " records"]
    labels: Int[Tensor, " records"] | None = None
    strength: Float[Tensor, " records"] | None = None

    def __post_init__(self) -> None:
        """Refuse empty and non-finite scores."""
        if not len(self.scores) or not bool(self.scores.isfinite().all()):
            raise ClaimError("a membership claim needs one or more scores, all finite")

    def numbers(self) -> tuple[float, ...]:
        """Return each score in its shortest float32 form, as findings hold thousands."""
        return tuple(float(str(score)) for score in self.scores.numpy())

    def strengths(self) -> tuple[float, ...]:
        """Return the strength of each record."""
        return () if self.strength is None else tuple(self.strength.tolist())
