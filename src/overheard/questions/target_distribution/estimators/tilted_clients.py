"""Virtual clients whose numbers to predict are distributed in many ways."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.learning.fitting.standardizer import fit_standardizer

LARGEST_TILT = 1.5
"""Standard deviation of the tilt by a number to predict, per standard deviation of it."""

FEWEST_EFFECTIVE = 0.35
"""Smallest share of the examples that count in a draw, by Kish's effective sample size.

With fewer, a client holds the same examples many times, as no real one does. Chosen on the
seeds from 900 on of `benchmarks/target_distribution.py`.
"""

SHRINK = 0.9
"""By what the tilts of a client are multiplied until enough examples count."""

INPUT_TILT = 0.7
"""Standard deviation of the tilt by a random direction of the inputs."""

MOST_COLUMNS = 500
"""The most inputs of which a random direction is made."""


def draw_tilted_clients(
    examples: Examples, rows: Rows, sizes: Sequence[int], seed: Seed
) -> list[Int[Tensor, " examples"]]:
    """Return the rows of virtual clients, each drawn with other odds.

    The odds of an example are exp(a y + b y^2 + c x), where y is a random direction of the
    numbers to predict, x one of the inputs, both standardised, and a, b and c are drawn for
    each client. So clients differ in the mean, the spread and the inputs of their examples. All
    three are made smaller until `FEWEST_EFFECTIVE` of the examples count.

    Args:
        examples: the attacker's examples, without classes.
        rows: rows that the clients may hold; with replacement.
        sizes: the number of examples of each client.
        seed: the seed of the draws.

    """
    generator = seed.generator()
    numbers = _standardize(examples.loss_labels[rows].double())
    inputs = _standardize(examples.inputs[rows].double().flatten(1)[:, :MOST_COLUMNS])
    drawn = []
    for size in sizes:
        direction = torch.randn(numbers.shape[1], generator=generator, dtype=torch.float64)
        along = numbers @ (direction / direction.norm())
        ways = torch.randn(inputs.shape[1], generator=generator, dtype=torch.float64)
        across = _standardize((inputs @ ways)[:, None])[:, 0]
        tilt, bend, turn = torch.randn(3, generator=generator, dtype=torch.float64).tolist()
        odds = LARGEST_TILT * tilt * along - 0.3 * abs(bend) * along.square() * (bend > 0)
        odds = odds + INPUT_TILT * turn * across
        weights = _weights(odds)
        chosen = torch.multinomial(weights, size, replacement=True, generator=generator)
        drawn.append(rows[chosen])
    return drawn


def _weights(odds: Float[Tensor, " examples"]) -> Float[Tensor, " examples"]:
    """Return weights by these logarithms of odds, flattened until enough examples count."""
    while True:
        weights = (odds - odds.max()).exp()
        count = weights.sum().square() / weights.square().sum()
        if count >= FEWEST_EFFECTIVE * len(odds):
            return weights
        odds = SHRINK * odds


def _standardize(
    columns: Float[Tensor, "examples columns"],
) -> Float[Tensor, "examples columns"]:
    return fit_standardizer(columns).standardize(columns)
