"""Training losses of examples, computed from logits and labels."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from overheard.core.recipe import LossName


def mean_loss(
    logits: Float[Tensor, "examples classes"],
    labels: Int[Tensor, " examples"],
    loss: LossName,
    label_smoothing: float,
) -> Float[Tensor, ""]:
    """Compute the mean loss over the examples, as the recipe names it."""
    if loss == "squared_error":
        return functional.mse_loss(expected_rating(logits), labels.to(logits.dtype))
    return functional.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def per_example_loss(
    logits: Float[Tensor, "examples classes"],
    labels: Int[Tensor, " examples"],
    loss: LossName,
    label_smoothing: float,
) -> Float[Tensor, " examples"]:
    """Compute the loss of each example, as the recipe names it."""
    if loss == "squared_error":
        return (expected_rating(logits) - labels).square()
    return functional.cross_entropy(
        logits, labels, reduction="none", label_smoothing=label_smoothing
    )


def expected_rating(
    logits: Float[Tensor, "*examples classes"],
) -> Float[Tensor, "*examples"]:
    """Compute the mean of the labels 0, 1, 2, ... under the softmax probabilities."""
    return logits.softmax(-1) @ rating_values(logits)


def rating_values(logits: Float[Tensor, "*examples classes"]) -> Float[Tensor, " classes"]:
    """Return the labels 0, 1, 2, ... with the dtype and device of the logits."""
    return torch.arange(logits.shape[-1], dtype=logits.dtype, device=logits.device)
