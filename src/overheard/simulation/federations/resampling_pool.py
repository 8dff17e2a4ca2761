"""Auxiliary examples from which each simulated federation draws a population of its own."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.simulation.augment import augment_examples

ENOUGH_ORIGINALS = 3
"""With this many originals for each example of a client, copies are not needed. Alterations
change how models respond to label shares, so that estimated shifts are wrong by a tenth."""

COPIES = 8
"""Altered copies per example, on average, of fewer originals. A simulated client rarely draws
one copy twice, as a real client rarely gets the same example again; without copies, models
memorise the pool."""

MIN_COPIES_PER_CLASS = 100
"""Copies of a rare class, so that its clients do not train on a handful of examples."""

MAX_POOL_BYTES = 2**29
"""The largest pool, in bytes; for large inputs there are fewer copies."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ResamplingPool:
    """Examples with altered copies, for the bootstrap of populations (Efron 1979).

    Real clients draw from a population of which the auxiliary examples are a sample. Simulated
    clients draw from a sample of the auxiliary examples. So the auxiliary examples differ from
    the population of a simulated federation about as much as from the real population.

    Args:
        examples: the originals, then the copies.
        labels: the label of each original.
        copies: by original, the rows of itself and of its copies.

    """

    examples: Examples
    labels: Int[np.ndarray, " originals"]
    copies: tuple[Int[np.ndarray, " _"], ...]

    def draw_population(self, generator: np.random.Generator) -> "Population":
        """Draw as many originals of each label as there are, with replacement."""
        by_label = (
            np.flatnonzero(self.labels == label) for label in range(self.labels.max() + 1)
        )
        return Population(
            self,
            tuple(
                generator.choice(originals, len(originals)) if len(originals) else originals
                for originals in by_label
            ),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The originals of each label that one simulated federation draws from."""

    pool: ResamplingPool
    originals: tuple[Int[np.ndarray, " _"], ...]

    def draw_chunk(
        self,
        size: int,
        shares: Float[np.ndarray, " classes"],
        generator: np.random.Generator,
        *,
        distinct: bool = False,
    ) -> Rows:
        """Draw examples of a client: a multinomial draw of its shares.

        Args:
            size: how many.
            shares: the client's label shares.
            generator: of the draws.
            distinct: whether examples differ as far as possible, as those of a real client do:
                no original is drawn again before the others of its label, and only what is
                drawn again is an altered copy. Otherwise each is any copy of any original, so
                that chunks vary more.

        Returns:
            Rows of the pool, in random order.

        """
        counts = generator.multinomial(size, shares)
        draw = _draw_in_turn if distinct else _draw_again
        drawn = np.concatenate(
            [
                draw(originals, count, generator) if count else originals[:0]
                for originals, count in zip(self.originals, counts, strict=True)
            ]
        )
        which, copies = generator.random(size), self.pool.copies
        if distinct:
            which[np.unique(drawn, return_index=True)[1]] = 0  # the first copy is the original
        rows = [
            copies[original][int(place * len(copies[original]))]
            for original, place in zip(drawn, which, strict=True)
        ]
        return torch.from_numpy(generator.permutation(np.array(rows)))


def _draw_again(
    originals: Int[np.ndarray, " originals"], count: int, generator: np.random.Generator
) -> Int[np.ndarray, " count"]:
    return generator.choice(originals, count)


def _draw_in_turn(
    originals: Int[np.ndarray, " originals"], count: int, generator: np.random.Generator
) -> Int[np.ndarray, " count"]:
    turns = -(-count // len(originals))
    return np.concatenate([generator.permutation(originals) for _ in range(turns)])[:count]


def build_resampling_pool(examples: Examples, client_size: int, seed: Seed) -> ResamplingPool:
    """Add altered copies to these examples, unless there are enough for clients of this size.

    If there are not, every class has about equally many copies; if there are, only classes with
    fewer than `MIN_COPIES_PER_CLASS` have any.
    """
    labels = examples.labels
    counts = labels.bincount()
    size = max(1, examples.inputs[0].numel() * examples.inputs.element_size())
    per_class = MIN_COPIES_PER_CLASS
    if len(labels) < ENOUGH_ORIGINALS * client_size:
        most = max(len(labels), min(COPIES * len(labels), MAX_POOL_BYTES // size))
        per_class = max(per_class, most // int((counts > 0).sum()))
    augmented = augment_examples(examples, per_class, seed)
    # `augment_examples` appends copies label by label, of the originals in turn.
    origins = [torch.arange(len(labels))]
    for label in (counts > 0).nonzero().flatten().tolist():
        rows = (labels == label).nonzero().flatten()
        missing = max(0, per_class - len(rows))
        origins.append(rows.repeat(-(-missing // len(rows)))[:missing])
    origin = torch.cat(origins).numpy()
    order = np.argsort(origin, kind="stable")
    ends = np.cumsum(np.bincount(origin, minlength=len(labels)))
    return ResamplingPool(augmented, labels.numpy(), tuple(np.split(order, ends[:-1])))
