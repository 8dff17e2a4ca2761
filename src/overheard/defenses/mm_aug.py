"""Training with additional public examples of one mode (topic)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge

from overheard.core.defense import Defense, DefenseContext
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.own_code.reference import REFERENCE, OutsideName
from overheard.core.settings import Positive
from overheard.defenses._background import add_background, require_background, share_count
from overheard.defenses._modes import find_modes


@final
@dataclass(frozen=True, slots=True)
class MmAug(Defense):
    """Each client adds background examples of one mode, drawn for this client, to its own.

    The background is clustered into modes (k-means), once for all clients. Each client draws
    one mode uniformly, and adds alpha n of its examples to its own n (equation 9). So each
    client gets its own false bias, while `rand_aug` gives all clients the same. Mode and
    examples are drawn once per client. They are the same in every round in which the client
    holds the same examples. No example is drawn twice before all of the mode were drawn; the
    equation draws with replacement.

    Two clients may draw the same mode, the more likely the fewer modes there are. The added
    examples are the same in all rounds, so they mark the client: they hide its user, but not
    that two updates have one sender. An attacker that knows the background can try all modes on
    its auxiliary data.

    Orekondy et al. cluster features of a MobileNet trained on ImageNet. Here features come from
    the inputs (see `_features`) or from your own extractor, which may use any trained model.
    The federation's model is no option: data are mixed before the first round, when it is
    untrained.

    Args:
        alpha: background examples for each of the client's own, rounded up to whole examples.
        modes: number of clusters of the background, M; the published numbers are 100 (PIPA),
            300 (Blog, Yelp) and 500 (OpenImages). There may be fewer.
        extractor: "package.module:function", which takes inputs and returns features, one row
            per example. It is executed, so name only code that you trust. None = features of
            the inputs.

    """

    alpha: Annotated[float, Ge(0)] = 0.5
    modes: Positive = 300
    extractor: OutsideName | None = None

    name: ClassVar[str] = "mm_aug"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, equation 9, mode-specific data augmentation (mm-aug)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def check_together(self) -> None:
        """Refuse a text that is not a reference to a function."""
        if self.extractor is not None and not REFERENCE.fullmatch(self.extractor):
            raise ValueError(
                "extractor: a function is given as 'package.module:function', got "
                f"{self.extractor!r}"
            )

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Add examples of a mode, drawn by the context's lasting seed.

        Raises:
            PlanError: if there are no background examples, or the extractor cannot be used.

        """
        background = require_background(context, self.name)
        count = share_count(len(data), self.alpha)
        if not count:
            return data
        mode_rows = find_modes(background.inputs, self.modes, self.extractor)
        generator = context.persistent_seed.child("mode").generator()
        rows = mode_rows[int(torch.randint(len(mode_rows), (), generator=generator))]
        return add_background(
            data, background, rows, count, context.persistent_seed.child("examples").generator()
        )
