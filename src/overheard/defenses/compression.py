"""Top-k compression: a client sends only its largest changes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Gt, Le
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.mechanism import Site
from overheard.core.messages import Update, Weights


@final
@dataclass(frozen=True, slots=True)
class Compression(Defense):
    """Each client sends the numbers of its update with the largest magnitude; others are 0.

    It sends the share `keep` of all parameters, rounded up, regardless of their tensors.

    Numbers that are not sent are lost. Defenses have no memory, so unlike in Aji and Heafield
    nothing is carried over to the next round, and training with a small `keep` is slower. The
    sent numbers are exact and the most informative ones: the changes of the last layer, which
    label inference uses, are among the largest. The positions of sent numbers leak too.

    Args:
        keep: share of the parameters that is sent.

    """

    keep: Annotated[float, Gt(0), Le(1)] = 0.1

    name: ClassVar[str] = "compression"
    source: ClassVar[str] = (
        "Aji and Heafield 2017 (EMNLP), with one threshold for all tensors and without their "
        "residuals; as a defense: Zhu et al. 2019 (NeurIPS), Gu and Bai 2023 (LDIA, JISA 74)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Keep the largest numbers; of equal ones, the first.

        Raises:
            ValueError: if the update has NaN or infinite numbers.

        """
        parts = dict(update.delta)
        sizes = torch.cat([part.flatten().abs() for part in parts.values()])  # (params)
        if not bool(sizes.isfinite().all()):
            raise ValueError(
                f"the update of {context.party} in round {context.round} must be finite to be "
                "compressed, but has NaN or infinite numbers"
            )
        # From the decimal digits: in floats 0.1 * 30 exceeds 3.
        count = math.ceil(Fraction(str(self.keep)) * len(sizes))
        return replace(update, delta=_apply_mask(parts, _mark_largest(sizes, count)))

    def promise(self, run: RunParameters) -> str:
        """State that there is no formal promise."""
        return "no formal promise: the largest changes are sent exactly"


def _mark_largest(sizes: Float[Tensor, " params"], count: int) -> Bool[Tensor, " params"]:
    """Return a mask of the `count` largest sizes; of equal ones, the first."""
    threshold = sizes.topk(count, sorted=False).values.min()
    above, tied = sizes > threshold, sizes == threshold
    return above | (tied & (tied.cumsum(0) <= count - above.sum()))


def _apply_mask(parts: Weights, is_sent: Bool[Tensor, " params"]) -> Mapping[str, Tensor]:
    masks = torch.split(is_sent, [part.numel() for part in parts.values()])
    return {
        name: part.where(mask.view_as(part), 0.0)
        for (name, part), mask in zip(parts.items(), masks, strict=True)
    }
