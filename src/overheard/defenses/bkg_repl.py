"""Training with public examples that replace some of the client's own."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, DefenseContext
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.settings import Share
from overheard.defenses._background import add_background, require_background, share_count


@final
@dataclass(frozen=True, slots=True)
class BkgRepl(Defense):
    """Each client replaces a share of its examples by background examples.

    The number of examples stays the same. The draw is made once per client. It is the same in
    every round in which the client holds the same examples. Background examples are drawn at
    random, none twice before all were drawn; several clients may draw the same ones.

    At a share of 1 an update reveals only the number of the client's examples. Below 1 the
    remaining examples still leak, with a weaker signal. An attacker that knows the background
    can mix it into its auxiliary data in the same way and learn such mixtures. The training
    distribution differs from the test distribution, which may cost accuracy.

    Args:
        alpha: share of a client's examples that is replaced, rounded up to whole examples.

    """

    alpha: Share = 0.5

    name: ClassVar[str] = "bkg_repl"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, data replacement (bkg-repl)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Replace examples, drawn by the context's lasting seed.

        Raises:
            PlanError: if there are no background examples.

        """
        background = require_background(context, self.name)
        count = share_count(len(data), self.alpha)
        if not count:
            return data
        order = torch.randperm(
            len(data), generator=context.persistent_seed.child("order").generator()
        )
        remaining = data.take(order[count:].sort().values.to(data.labels.device))
        rows = torch.arange(len(background))
        return add_background(
            remaining,
            background,
            rows,
            count,
            context.persistent_seed.child("examples").generator(),
        )
