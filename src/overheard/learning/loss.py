"""What training makes small: the loss of an example, from its logits and its label."""

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
    """The loss that a recipe names, on average over the examples."""
    if loss == "squared_error":
        return functional.mse_loss(expected_rating(logits), labels.to(logits.dtype))
    return functional.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def loss_of_each(
    logits: Float[Tensor, "examples classes"],
    labels: Int[Tensor, " examples"],
    loss: LossName,
    label_smoothing: float,
) -> Float[Tensor, " examples"]:
    """The loss that a recipe names, of each example."""
    if loss == "squared_error":
        return (expected_rating(logits) - labels).square()
    return functional.cross_entropy(
        logits, labels, reduction="none", label_smoothing=label_smoothing
    )


def expected_rating(
    logits: Float[Tensor, "*examples classes"],
) -> Float[Tensor, "*examples"]:
    """The mean of the labels 0, 1, 2, ..., each as likely as softmax has it."""
    return logits.softmax(-1) @ ratings(logits)


def ratings(logits: Float[Tensor, "*examples classes"]) -> Float[Tensor, " classes"]:
    """The labels 0, 1, 2, ... as numbers of the logits' type, where the logits are."""
    return torch.arange(logits.shape[-1], dtype=logits.dtype, device=logits.device)
