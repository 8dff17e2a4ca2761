"""The claim: the probability that a client holds more examples than most."""

from dataclasses import dataclass
from typing import final

from overheard.core.claims import Claim


@final
@dataclass(frozen=True, slots=True)
class LargerHalf(Claim):
    """The probability that the target holds more examples than the median client.

    Args:
        chance: the probability, 0 to 1.

    """

    chance: float

    def __post_init__(self) -> None:
        """Refuse invalid probabilities."""
        if not 0 <= self.chance <= 1:
            raise ValueError(f"a probability must be between 0 and 1, got {self.chance}")

    def numbers(self) -> tuple[float, ...]:
        """Return the probability."""
        return (self.chance,)
