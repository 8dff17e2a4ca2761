"""Training on public examples of one topic besides one's own."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, Moment, Site
from overheard.core.examples import Examples
from overheard.defenses._background import background_of, joined, share_of
from overheard.defenses._features import REFERENCE
from overheard.defenses._modes import modes_of


@final
@dataclass(frozen=True, slots=True)
class MmAug(Defense):
    """Each client adds background examples of one mode, drawn for it alone, to its own.

    The background is clustered into modes (k-means), once for all clients. A client picks one
    at random, each as likely as the others, and adds alpha n examples of it to its own n
    (equation 9): a false bias of its own, where `rand_aug` gives all the same. Mode and
    examples are drawn once a client, and are the same in every round in which it holds the same
    examples; none is taken twice before all of the mode were taken once, so a small mode is
    taken again and again, where the equation would draw with replacement from the start.

    Two clients may pick the same mode, all the likelier the fewer there are. What a client adds
    stays the same over rounds, so it becomes a mark of its own: it hides whose data these are,
    not that two updates are of one sender. An attacker who knows the background may try all
    modes on what it knows of a user.

    Orekondy et al. cluster features of a MobileNet trained on ImageNet. Here the features are
    those of the inputs (see `_features`), or an extractor of yours, which may hold any trained
    model. Those of the federation's own model are not on offer: data are mixed before the first
    round, when that model has learned nothing.

    Args:
        alpha: background examples for each of the client's own, rounded up to whole ones.
        modes: into how many the background is clustered, M; the published figures are 100
            (PIPA), 300 (Blog, Yelp) and 500 (OpenImages). Fewer where fewer are found.
        extractor: "package.module:function", which takes inputs and gives features, a row an
            example; it is run, so trust it. None = features of the inputs.

    """

    alpha: float = 0.5
    modes: int = 300
    extractor: str | None = None

    name: ClassVar[str] = "mm_aug"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, equation 9, mode-specific data augmentation (mm-aug)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def __post_init__(self) -> None:
        """Refuse what cannot be added, no modes, and what is no reference to a function."""
        if not 0 <= self.alpha < math.inf:
            raise ValueError(f"alpha must be 0 or more and finite, got {self.alpha}")
        if self.modes < 1:
            raise ValueError(f"there is 1 mode or more, got {self.modes}")
        if self.extractor is not None and not REFERENCE.fullmatch(self.extractor):
            raise ValueError(
                "an extractor of your own is named as 'package.module:function', got "
                f"{self.extractor!r}"
            )

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        """Add examples of a mode; the moment's lasting seed says which.

        Raises:
            PlanError: if there are no background examples, or the extractor cannot be used.

        """
        background = background_of(moment, self.name)
        count = share_of(len(data), self.alpha)
        if not count:
            return data
        found = modes_of(background.inputs, self.modes, self.extractor)
        pick = moment.lasting.child("mode").generator()
        rows = found[int(torch.randint(len(found), (), generator=pick))]
        return joined(
            data, background, rows, count, moment.lasting.child("examples").generator()
        )
