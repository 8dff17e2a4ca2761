"""Mixes public examples of the task with a client's own."""

import math
from fractions import Fraction

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.defense import Moment
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.defenses._cycled import cycled


def background_of(moment: Moment, defense: str) -> Examples:
    """The background examples that a defense of this name cannot do without.

    Raises:
        PlanError: if there are none.

    """
    background = moment.background
    if background is None or not len(background):
        raise PlanError(
            f"{defense} mixes public examples with those of {moment.party}, and there are "
            "none: give data.background, or take a data set that has background examples"
        )
    return background


def share_of(count: int, share: float) -> int:
    """So large a share of a count, rounded up.

    The share is the decimal as it was written: in floats 0.1 * 30 exceeds 3.
    """
    return math.ceil(Fraction(str(share)) * count)


def joined(
    own: Examples,
    background: Examples,
    rows: Int[Tensor, " examples"],
    count: int,
    generator: torch.Generator,
) -> Examples:
    """A client's own examples, and so many background examples drawn from these rows.

    None is drawn again before all of the rows were drawn.
    """
    more = background.take(cycled(rows, count, generator))
    return Examples(
        torch.cat([own.inputs, more.inputs.to(own.inputs.device)]),
        torch.cat([own.labels, more.labels.to(own.labels.device)]),
    )
