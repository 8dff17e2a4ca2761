"""Clipping of updates, which bounds the sensitivity that noise must cover."""

import math
from collections.abc import Mapping

from torch import Tensor

from overheard.core.defense import DefenseContext
from overheard.core.messages import Weights


def clip_update(delta: Weights, clip: float, context: DefenseContext) -> Mapping[str, Tensor]:
    """Clip the update to an L2 norm of `clip` over all its tensors.

    Raises:
        ValueError: if the update has NaN or infinite numbers.

    """
    parts = dict(delta)
    norm = math.sqrt(sum(float(part.double().square().sum()) for part in parts.values()))
    if not math.isfinite(norm):
        raise ValueError(
            f"the update of {context.party} in round {context.round} must be finite to be "
            "clipped, but has NaN or infinite numbers"
        )
    if norm <= clip:
        return parts
    return {name: part * (clip / norm) for name, part in parts.items()}
