"""What an attack may claim of which other targets are of the same sender."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, check_candidates
from overheard.core.parties import Party


@dataclass(frozen=True, slots=True)
class SameSender(Claim):
    """The other targets that come from the same sender as a target.

    Args:
        others: the targets compared with it, all different.
        scores: evidence that each comes from the same sender; larger is more likely. All
            targets of an attack share one scale.

    """

    others: tuple[Party, ...]
    scores: Float[Tensor, " others"]

    def __post_init__(self) -> None:
        """Refuse invalid or empty comparisons."""
        check_candidates(self.others, self.scores)

    def numbers(self) -> tuple[float, ...]:
        """Return the score of each other target."""
        return tuple(self.scores.tolist())

    def candidates(self) -> tuple[str, ...]:
        """Return the other targets."""
        return self.others
