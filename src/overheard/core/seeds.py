"""Randomness that is named, so that adding a draw never moves another."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class Seed:
    """A place in the tree of all random draws.

    >>> Seed(0).child("client", 3) == Seed(0).child("client", 3)
    True
    >>> Seed(0).child("client", 3) == Seed(0).child("client", 4)
    False
    """

    value: int

    def __post_init__(self) -> None:
        """Refuse what no generator takes."""
        if not 0 <= self.value < 2**63:
            raise ValueError(f"a seed lies between 0 and 2^63 - 1, got {self.value}")

    def child(self, *path: str | int) -> "Seed":
        """Derive the seed that belongs to a named place below this one."""
        digest = blake2b(repr((self.value, path)).encode(), digest_size=8).digest()
        return Seed(int.from_bytes(digest, "big") >> 1)

    def generator(self, device: torch.device | str = "cpu") -> torch.Generator:
        """Start a torch generator here."""
        return torch.Generator(device).manual_seed(self.value)

    def numpy(self) -> np.random.Generator:
        """Start a numpy generator here."""
        return np.random.default_rng(self.value)
