"""Training on a resampled set in which all classes of a client are equally frequent."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, Moment, Site
from overheard.core.examples import Examples
from overheard.defenses._cycled import cycled


@final
@dataclass(frozen=True, slots=True)
class ClassBalanced(Defense):
    """Each client repeats examples of its rare classes and leaves out some of the others.

    As many examples as before, and of each class that it holds the same number, give or take
    one. Anew each round: what is left out of one round may be learned in another.

    It hides proportions, not which classes are absent: a class without an example cannot be
    repeated. The number of examples stays what it was. Rare classes are learned from few
    examples again and again, so an attacker who looks at how well each class is generalised,
    not at how hard it pulls, may still tell them. And the federation learns from other
    proportions than those it will meet.
    """

    name: ClassVar[str] = "class_balanced"
    source: ClassVar[str] = (
        "Random over- and undersampling: He and Garcia 2009 (TKDE), section 3.1, who mend "
        "imbalance; tried here as a defense against label inference"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        """Draw the balanced set, class after class; the moment's seed says which examples.

        All examples of a class are taken equally often, give or take one.
        """
        if not len(data):
            return data
        generator = moment.seed.generator()
        labels = data.labels.cpu()
        held = torch.unique(labels)
        each, rest = divmod(len(labels), len(held))
        # Which classes get one more is drawn too, lest it be the same ones in every round.
        more = torch.randperm(len(held), generator=generator) < rest
        taken = [
            cycled((labels == label).nonzero().flatten(), each + extra, generator)
            for label, extra in zip(held, more.int().tolist(), strict=True)
        ]
        return data.take(torch.cat(taken).to(data.labels.device))
