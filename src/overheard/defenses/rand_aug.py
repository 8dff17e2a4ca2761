"""Training with additional public examples."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge

from overheard.core.defense import Defense, DefenseContext
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.defenses._background import add_background, require_background, share_count


@final
@dataclass(frozen=True, slots=True)
class RandAug(Defense):
    """Each client adds random background examples to its own.

    A client with n examples trains on (1 + alpha) n (equation 8). Training takes longer by this
    factor, and the client reports the larger number of examples. The draw is made once per
    client. It is the same in every round in which the client holds the same examples. No
    example is drawn twice before all were drawn, although the equation allows it. Several
    clients may draw the same examples.

    The added examples shift all clients in one direction, that of the background. They do not
    remove a client's own pattern: its examples still have the weight 1 / (1 + alpha), and an
    attacker finds the background's contribution equally in all clients.

    Args:
        alpha: background examples for each of the client's own, rounded up to whole examples.

    """

    alpha: Annotated[float, Ge(0)] = 0.5

    name: ClassVar[str] = "rand_aug"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, equation 8, data augmentation (rand-aug)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Add examples, drawn by the context's lasting seed.

        Raises:
            PlanError: if there are no background examples.

        """
        background = require_background(context, self.name)
        count = share_count(len(data), self.alpha)
        if not count:
            return data
        rows = torch.arange(len(background))
        return add_background(
            data, background, rows, count, context.persistent_seed.child("examples").generator()
        )
