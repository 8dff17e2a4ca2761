"""What an attack may claim of which known user its target is."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, check_choice
from overheard.core.errors import ClaimError


@dataclass(frozen=True, slots=True)
class Identity(Claim):
    """Which of the known users stands behind a target.

    Args:
        users: whom the attacker knows, each once.
        scores: evidence for each of them, larger = more likely; alike scores are ties. Scores
            of one attack are on one scale, so that targets can be ranked for a user by them.
        unseen: the chance, 0..1, that it is none of the known users; None where the attack
            makes no such statement.

    """

    users: tuple[str, ...]
    scores: Float[Tensor, " users"]
    unseen: float | None = None

    def __post_init__(self) -> None:
        """Refuse what ranks nobody."""
        check_choice(self.users, self.scores)
        if self.unseen is not None and not 0 <= self.unseen <= 1:
            raise ClaimError(f"the chance of an unseen user lies in 0..1, got {self.unseen}")

    def numbers(self) -> tuple[float, ...]:
        """The score of each known user."""
        return tuple(self.scores.tolist())

    def candidates(self) -> tuple[str, ...]:
        """The known users."""
        return self.users

    def none_of_them(self) -> float | None:
        """The chance that it is none of the known users."""
        return self.unseen
