"""What an attack may claim of who its target is, and what that person is like."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError
from overheard.core.parties import Party


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
        _check_choice(self.users, self.scores)
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
        _check_choice(self.others, self.scores)

    def numbers(self) -> tuple[float, ...]:
        """The score of each other target."""
        return tuple(self.scores.tolist())

    def candidates(self) -> tuple[str, ...]:
        """The other targets."""
        return self.others


@dataclass(frozen=True, slots=True)
class Attribute(Claim):
    """Which value an attribute of the person behind a target has.

    Args:
        attribute: which, such as "gender".
        values: that it may have, each once, two or more.
        probabilities: of each, 0 or more and 1 together.

    """

    attribute: str
    values: tuple[str, ...]
    probabilities: Float[Tensor, " values"]

    def __post_init__(self) -> None:
        """Refuse what is no choice between values."""
        _check_choice(self.values, self.probabilities)
        total = float(self.probabilities.sum())
        if len(self.values) < 2 or float(self.probabilities.min()) < 0 or abs(total - 1) > 1e-4:
            raise ClaimError(
                "an attribute has 2 values or more, whose probabilities are 0 or more and sum "
                f"to 1, got {dict(zip(self.values, self.probabilities.tolist(), strict=True))}"
            )

    def numbers(self) -> tuple[float, ...]:
        """The probability of each value."""
        return tuple(self.probabilities.tolist())

    def candidates(self) -> tuple[str, ...]:
        """The values."""
        return self.values


PERSONAL = (Identity, SameSender, Attribute)
"""The questions about the person behind a sender."""


def _check_choice(candidates: tuple[str, ...], scores: Float[Tensor, " candidates"]) -> None:
    if not candidates or len(set(candidates)) < len(candidates):
        raise ClaimError(f"a choice is among different candidates, one or more: {candidates}")
    # A NaN has no rank.
    if scores.shape != (len(candidates),) or not bool(scores.isfinite().all()):
        raise ClaimError(f"one finite score a candidate, got {scores.tolist()}")
