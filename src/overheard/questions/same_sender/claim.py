"""What an attack may claim of which other targets are of the same sender."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, check_choice
from overheard.core.parties import Party


@dataclass(frozen=True, slots=True)
class SameSender(Claim):
    """Which other targets are of the same sender as this one.

    Args:
        others: the targets that it was compared with, each once.
        scores: evidence that each is of the same sender, larger = more likely; one scale for
            all targets of an attack.

    """

    others: tuple[Party, ...]
    scores: Float[Tensor, " others"]

    def __post_init__(self) -> None:
        """Refuse what compares with nobody."""
        check_choice(self.others, self.scores)

    def numbers(self) -> tuple[float, ...]:
        """The score of each other target."""
        return tuple(self.scores.tolist())

    def candidates(self) -> tuple[str, ...]:
        """The other targets."""
        return self.others
