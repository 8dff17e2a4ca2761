"""The random factors of dropout for clients that train side by side."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.seeds import Seed


@final
class DropoutNoise:
    """Draws for each client, from a generator of its own, what `nn.Dropout` draws on a CPU.

    So a client has the same factors as if it trained alone.

    Args:
        seeds: one per client.

    """

    def __init__(self, seeds: Sequence[Seed]) -> None:
        self._generators = [seed.generator() for seed in seeds]
        self._sizes: Sequence[int] = ()

    def start_step(self, sizes: Sequence[int]) -> None:
        """Set the number of examples in the batch of each client; the last ones may be done."""
        self._sizes = sizes

    def draw(
        self, like: Float[Tensor, "clients examples units"], rate: float
    ) -> Float[Tensor, "clients examples units"]:
        """Draw a factor for each number, on the CPU: 0 at this rate, else 1 / (1 - rate).

        Examples that pad a batch have the factor 0.
        """
        factors = torch.zeros(like.shape, dtype=like.dtype)
        # Clients may be fewer than at the start: the last ones are dropped once they are done.
        for size, generator, own in zip(self._sizes, self._generators, factors, strict=False):
            own[:size].bernoulli_(1 - rate, generator=generator)
        return factors.div_(1 - rate).to(like.device)
