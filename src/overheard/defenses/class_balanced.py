"""Training on resampled examples in which a client's classes are equally frequent."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.defenses._even_draws import draw_evenly


@final
@dataclass(frozen=True, slots=True)
class ClassBalanced(Defense):
    """Each client repeats examples of rare classes and omits some of the others.

    The number of examples stays the same, and all classes that the client holds have equally
    many, up to one. Examples are drawn anew each round, so those omitted may be used later.

    It hides proportions, but not which classes are absent, and not the number of examples. Rare
    classes are trained on few examples repeatedly, so an attacker may recognize them by how
    well they generalize instead of by the size of their gradients. The training distribution
    differs from the test distribution, which may cost accuracy.
    """

    name: ClassVar[str] = "class_balanced"
    source: ClassVar[str] = (
        "Random over- and undersampling: He and Garcia 2009 (TKDE), section 3.1, against class "
        "imbalance; used here as a defense against label inference"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"
    repeats_examples: ClassVar[bool] = True

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Draw the balanced set, class by class, by the context's seed.

        All examples of a class are drawn equally often, up to one.

        Raises:
            PlanError: if examples have no classes.

        """
        if data.float_labels is not None:
            raise PlanError(
                "class_balanced: it needs classes, but the data have several labels per "
                "example, or numbers: remove the defense"
            )
        if not len(data):
            return data
        generator = context.seed.generator()
        labels = data.labels.cpu()
        present = torch.unique(labels)
        per_class, rest = divmod(len(labels), len(present))
        # The classes with one more are drawn too, so that they differ between rounds.
        one_more = torch.randperm(len(present), generator=generator) < rest
        rows = [
            draw_evenly((labels == label).nonzero().flatten(), per_class + extra, generator)
            for label, extra in zip(present, one_more.int().tolist(), strict=True)
        ]
        return data.take(torch.cat(rows).to(data.labels.device))
