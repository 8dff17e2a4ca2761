"""The claim: for one client or several, the probability that it holds more than most."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.claims import Claim, Picture
from overheard.core.parties import Party

SIDE = 24
"""Width and height of a client's square in the picture, in pixels."""


@final
@dataclass(frozen=True, slots=True)
class LargerHalf(Claim):
    """The probability that a client holds more examples than the median client.

    Args:
        clients: the clients that the claim is about; several if it is joint.
        chances: the probability (0..1) of each.

    """

    clients: tuple[Party, ...]
    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse invalid probabilities."""
        if not self.clients or len(self.chances) != len(self.clients):
            raise ValueError(f"each client needs one probability, got {self}")
        if not all(0 <= chance <= 1 for chance in self.chances):
            raise ValueError(f"a probability must be between 0 and 1, got {self.chances}")

    def numbers(self) -> tuple[float, ...]:
        """Return the probabilities."""
        return self.chances

    def pictures(self) -> tuple[Picture, ...]:
        """Return one square a client, in their order: the more probable, the brighter."""
        bars = torch.tensor([[self.chances]]).repeat_interleave(SIDE, dim=2)
        return (Picture("larger clients are bright", bars.expand(1, SIDE, -1)),)
