"""Training on a mixture of old and new examples for some rounds after they change."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.mechanism import Site
from overheard.core.settings import Positive


@final
@dataclass(frozen=True, slots=True)
class ChunkSmoothing(Defense):
    """Each client phases out its previous examples, so that a distribution shift is gradual.

    In the j-th round after a change, with j = 0 in the first, a share 1 - (j + 1) / (rounds +
    1) of the training examples comes from the previous chunk. The rest comes from the current
    one. The number of examples stays the same. Examples are drawn anew each round, without
    replacement. From round j = `rounds` on, only the current chunk is used.

    A sudden shift becomes a gradual one of the same size. A detector of sudden changes sees
    little, and one that accumulates evidence over rounds sees it later. The final composition
    is not hidden. The client trains less on new examples, and must store old ones that it may
    be obliged to delete.

    Only one previous chunk is stored. If chunks change again within `rounds` rounds, the rest
    of the older chunk is dropped at once. If data change every round, the training data merely
    lag by part of a round. List other defenses of the data after this one: the previous chunk
    is mixed in as it was before any of them.

    Args:
        rounds: number of rounds over which the previous chunk is phased out.

    """

    rounds: Positive = 5

    name: ClassVar[str] = "chunk_smoothing"
    source: ClassVar[str] = "this project's, against the shifts of Brunner and Montuoro 2024"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Draw the mixture by the context's seed.

        The number of old examples is rounded down, and at most the size of the previous chunk.
        """
        if context.previous_data is None:
            return data
        old, age = (
            context.previous_data.examples,
            context.round - context.previous_data.replaced_in_round,
        )
        share = max(0, self.rounds - age)
        count = min(len(data) * share // (self.rounds + 1), len(old))
        if not count:
            return data
        generator = context.seed.generator()
        previous = _draw_examples(old, count, generator)
        current = _draw_examples(data, len(data) - count, generator)
        return concatenate_examples((previous, current))

    def promise(self, run: RunParameters) -> str:
        """State that there is no formal promise, and what is not hidden."""
        return (
            f"no formal promise: a shift is spread over {self.rounds} rounds, and is fully "
            "visible in the end"
        )


def _draw_examples(examples: Examples, count: int, generator: torch.Generator) -> Examples:
    """Draw examples without replacement."""
    rows = torch.randperm(len(examples), generator=generator)[:count]
    return examples.take(rows.to(examples.labels.device))
