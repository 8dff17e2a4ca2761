"""Measure virtual clients of `conv_net`, whose training takes most of the time of such audits.

Each row interleaves both sides on one core, and takes the median of the ratios of CPU seconds,
as in benchmarks/learning.py.

    python benchmarks/virtual_clients.py            five pairs for each row; two minutes
    python benchmarks/virtual_clients.py --short    one row with three pairs; 10 seconds
"""

import argparse
import time
from functools import partial

import torch
from torch import nn

from _pairs import compare, consume
from learning import SEED, Cohort, largest_difference, members
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.learning.models.conv_net import ConvNet

CLIENTS, ROUNDS, EXAMPLES, EPOCHS = 300, 5, 250, 3
"""A cohort of virtual clients, for which each pair trains a small sample."""

SHAPES = ((1, 28, 28), (3, 32, 32))


def convolutional(shape: tuple[int, int, int], examples: int) -> Cohort:
    """Return one virtual client with random images of this shape."""
    task = Task(shape, tuple("0123456789"))
    generator = SEED.child("images").generator()
    pool = Examples(
        torch.randn(examples, *shape, generator=generator),
        torch.randint(0, 10, (examples,), generator=generator),
    )
    build = partial(ConvNet().build, task)

    def plain() -> nn.Module:
        return build()

    recipe = Recipe(rate=0.01, epochs=1, batch=32)
    return Cohort(build, plain, pool, members(1, examples, len(pool)), recipe)


def minutes(cohort: Cohort) -> float:
    """Return the CPU minutes of the whole cohort, from those of one client."""
    began = time.process_time()
    consume(cohort.train("sequential"))
    spent = time.process_time() - began
    return spent / len(cohort.pool) * CLIENTS * ROUNDS * EXAMPLES * EPOCHS / 60


def measure(shapes: tuple[tuple[int, int, int], ...], pairs: int) -> None:
    """Print a row for each shape, and the minutes of the whole cohort."""
    torch.set_num_threads(1)
    for shape in shapes:
        cohort, size = convolutional(shape, 128), " x ".join(map(str, shape))
        compare(
            f"train, virtual clients of conv_net, {size}, one core",
            cohort.train_plainly,
            partial(cohort.train, "sequential"),
            1.4,
            pairs,
        )
        print(
            f"  {minutes(cohort):.0f} minutes for {CLIENTS} clients x {ROUNDS} rounds x "
            f"{EXAMPLES} examples x {EPOCHS} epochs, from one client; difference from the "
            f"plain loop {largest_difference(cohort, 'sequential'):.0e}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--short", action="store_true")
    is_short = parser.parse_args().short
    measure(SHAPES[:1] if is_short else SHAPES, 3 if is_short else 5)
