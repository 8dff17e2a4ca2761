"""Named random seeds, so that a new random draw never changes another."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class Seed:
    """A node in the tree of random seeds.

    >>> Seed(0).child("client", 3) == Seed(0).child("client", 3)
    True
    >>> Seed(0).child("client", 3) == Seed(0).child("client", 4)
    False
    """

    value: int

    def __post_init__(self) -> None:
        """Check that generators accept the value."""
        if not 0 <= self.value < 2**63:
            raise ValueError(f"a seed must lie between 0 and 2^63 - 1, got {self.value}")

    def child(self, *path: str | int) -> "Seed":
        """Derive the seed at a named path below this one."""
        digest = blake2b(repr((self.value, path)).encode(), digest_size=8).digest()
        return Seed(int.from_bytes(digest, "big") >> 1)

    def generator(self) -> torch.Generator:
        """Return a torch generator with this seed, of the CPU.

        Generators of GPUs give other numbers. So all numbers are drawn on the CPU, and copied.
        """
        return torch.Generator().manual_seed(self.value)

    def numpy(self) -> np.random.Generator:
        """Return a numpy generator with this seed."""
        return np.random.default_rng(self.value)
