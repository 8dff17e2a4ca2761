"""Scales of the numbers that a model learns from."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from jaxtyping import Float64

Scale = Literal["standardised", "as_written", "by_255", "min_max"]
"""How numbers of a file become inputs.

"standardised": minus the mean, over the deviation. "as_written": as they are. "by_255": divided
by 255, as pixels. "min_max": from 0, the smallest, to 1, the largest. Statistics are those of
the training part, for each column or channel.
"""

SCALE_WORDS: Mapping[Scale, str] = MappingProxyType(
    {
        "standardised": "standardised by mean and deviation of the training part",
        "as_written": "as written",
        "by_255": "divided by 255",
        "min_max": "from 0, the smallest of the training part, to 1, the largest",
    }
)
"""What a scale is, in words that follow "numbers are"."""


def rescale(
    values: Float64[np.ndarray, "examples *rest"],
    fitted_to: Float64[np.ndarray, "fitted *rest"],
    scale: Scale,
    axes: tuple[int, ...] = (0,),
) -> Float64[np.ndarray, "examples *rest"]:
    """Return numbers on a scale; a missing one (NaN) becomes the mean, a constant one 0.

    Args:
        values: the numbers.
        fitted_to: those whose statistics are used.
        scale: the scale.
        axes: axes that share statistics.

    Raises:
        ValueError: if numbers are too large; it begins with what they are.

    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.nanmean(fitted_to, axis=axes, keepdims=True)
        values = np.where(np.isnan(values), mean, values)
        if scale == "standardised":
            deviation = np.nanstd(fitted_to, axis=axes, keepdims=True)
            if not np.isfinite(deviation).all():
                raise ValueError("has numbers too large to standardise: rescale it")
            values = (values - mean) / np.where(deviation > 0, deviation, 1)
        elif scale == "min_max":
            low = np.nanmin(fitted_to, axis=axes, keepdims=True)
            span = np.nanmax(fitted_to, axis=axes, keepdims=True) - low
            values = (values - low) / np.where(span > 0, span, 1)
        elif scale == "by_255":
            values = values / 255
        if not np.isfinite(values.astype(np.float32)).all():
            raise ValueError("has numbers too large for 32 bits: rescale it")
    return values
