"""Mixing of public background examples with a client's own examples."""

import math
from fractions import Fraction

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.defense import DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples, concatenate_examples
from overheard.defenses._even_draws import draw_evenly


def require_background(context: DefenseContext, defense: str) -> Examples:
    """Return the background examples that a defense of this name needs.

    Raises:
        PlanError: if there are none.

    """
    background = context.background
    if background is None or not len(background):
        raise PlanError(
            f"{defense}: it mixes public examples with those of {context.party}, but there are "
            "none; set data.background, or choose a data set that has background examples"
        )
    return background


def share_count(count: int, share: float) -> int:
    """Return share * count, rounded up.

    It is computed from the decimal digits of the share: in floats 0.1 * 30 exceeds 3.
    """
    return math.ceil(Fraction(str(share)) * count)


def add_background(
    own: Examples,
    background: Examples,
    rows: Int[Tensor, " examples"],
    count: int,
    generator: torch.Generator,
) -> Examples:
    """Append background examples, drawn from these rows, to a client's own examples.

    No row is drawn again before all rows were drawn.
    """
    added = background.take(draw_evenly(rows, count, generator))
    return concatenate_examples((own, added.to(own.inputs.device)))
