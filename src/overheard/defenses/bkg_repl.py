"""Training on public examples in the place of some of one's own."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, Moment, Site
from overheard.core.examples import Examples
from overheard.defenses._background import background_of, joined, share_of


@final
@dataclass(frozen=True, slots=True)
class BkgRepl(Defense):
    """Each client leaves out a share of its examples for background examples in their place.

    As many examples as before. Which ones go, and which come, is drawn once a client, and is
    the same in every round in which the client holds the same examples. Background examples are
    drawn at random, none twice before all were taken once; several clients may draw the same.

    At a share of 1 nothing of a client is learned, and its update tells nothing of it but the
    number of its examples. Below that what is left speaks as before, only more softly: an
    attacker who knows the background, and mixes it into what it knows of users in the same way,
    can learn what such a mixture sounds like. The federation learns from other data than those
    which it will meet.

    Args:
        alpha: share of a client's examples that is replaced, rounded up to whole examples.

    """

    alpha: float = 0.5

    name: ClassVar[str] = "bkg_repl"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, data replacement (bkg-repl)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha lies in 0..1, got {self.alpha}")

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        """Replace examples; the moment's lasting seed says which.

        Raises:
            PlanError: if there are no background examples.

        """
        background = background_of(moment, self.name)
        count = share_of(len(data), self.alpha)
        if not count:
            return data
        order = torch.randperm(len(data), generator=moment.lasting.child("order").generator())
        kept = data.take(order[count:].sort().values.to(data.labels.device))
        rows = torch.arange(len(background))
        return joined(
            kept, background, rows, count, moment.lasting.child("examples").generator()
        )
