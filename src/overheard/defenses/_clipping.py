"""Bounds how long an update is, which is what noise must cover."""

import math
from collections.abc import Mapping

from torch import Tensor

from overheard.core.defense import Moment
from overheard.core.messages import Weights


def clipped(delta: Weights, clip: float, moment: Moment) -> Mapping[str, Tensor]:
    """The update, scaled down to an L2 norm of `clip` over all its tensors if it is longer.

    Raises:
        ValueError: if it holds NaN or infinite numbers.

    """
    parts = dict(delta)
    norm = math.sqrt(sum(float(part.double().square().sum()) for part in parts.values()))
    if not math.isfinite(norm):
        raise ValueError(
            f"the update of {moment.party} in round {moment.round} must be finite to be "
            "clipped, and holds NaN or infinite numbers"
        )
    if norm <= clip:
        return parts
    return {name: part * (clip / norm) for name, part in parts.items()}
