"""Training on public examples besides one's own."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, Moment, Site
from overheard.core.examples import Examples
from overheard.defenses._background import background_of, joined, share_of


@final
@dataclass(frozen=True, slots=True)
class RandAug(Defense):
    """Each client adds random background examples to its own.

    Of n examples it makes (1 + alpha) n (equation 8), so training takes as much longer, and the
    number of examples that the client sends is told as that. Drawn once a client, and the same
    in every round in which the client holds the same examples; none twice before all were
    taken once, where the equation would allow it. Several clients may draw the same.

    What is added pulls all clients in one direction, that of the background, and does not take
    away what sets a client apart: its own examples still weigh 1 / (1 + alpha), and the pull of
    the background is what an attacker finds in all clients alike.

    Args:
        alpha: background examples for each of the client's own, rounded up to whole ones.

    """

    alpha: float = 0.5

    name: ClassVar[str] = "rand_aug"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, equation 8, data augmentation (rand-aug)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def __post_init__(self) -> None:
        """Refuse what cannot be added."""
        if not 0 <= self.alpha < math.inf:
            raise ValueError(f"alpha must be 0 or more and finite, got {self.alpha}")

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        """Add examples; the moment's lasting seed says which.

        Raises:
            PlanError: if there are no background examples.

        """
        background = background_of(moment, self.name)
        count = share_of(len(data), self.alpha)
        if not count:
            return data
        rows = torch.arange(len(background))
        return joined(
            data, background, rows, count, moment.lasting.child("examples").generator()
        )
