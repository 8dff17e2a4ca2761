"""The claim about which known user is behind a target."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, check_candidates
from overheard.core.errors import ClaimError


@dataclass(frozen=True, slots=True)
class Identity(Claim):
    """Which of the known users is behind a target.

    Args:
        users: the users known to the attacker, without repetition.
        scores: evidence for each user, larger = more likely; equal scores are ties. All scores
            of one attack share a scale, so targets can be ranked by the score of a user.
        unseen: the probability, 0..1, that it is none of the known users; None if the attack
            makes no such statement.

    """

    users: tuple[str, ...]
    scores: Float[Tensor, " users"]
    unseen: float | None = None

    def __post_init__(self) -> None:
        """Refuse invalid rankings and probabilities."""
        check_candidates(self.users, self.scores)
        if self.unseen is not None and not 0 <= self.unseen <= 1:
            raise ClaimError(f"the probability `unseen` must lie in 0..1, got {self.unseen}")

    def numbers(self) -> tuple[float, ...]:
        """Return the score of each known user."""
        return tuple(self.scores.tolist())

    def candidates(self) -> tuple[str, ...]:
        """Return the known users."""
        return self.users

    def unknown_probability(self) -> float | None:
        """Return the probability that it is none of the known users."""
        return self.unseen
