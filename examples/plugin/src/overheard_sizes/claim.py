"""The claim: how likely a client is one of those who hold most."""

from dataclasses import dataclass
from typing import final

from overheard.core.claims import Claim


@final
@dataclass(frozen=True, slots=True)
class LargerHalf(Claim):
    """How likely the target holds more examples than the median client.

    Args:
        chance: from 0 to 1.

    """

    chance: float

    def __post_init__(self) -> None:
        """Refuse what is no chance."""
        if not 0 <= self.chance <= 1:
            raise ValueError(f"a chance lies between 0 and 1, got {self.chance}")

    def numbers(self) -> tuple[float, ...]:
        """The chance alone."""
        return (self.chance,)
