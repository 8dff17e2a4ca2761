"""Training losses of examples, computed from a model's outputs and the labels."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional

from overheard.core.recipe import LossName


def mean_loss(
    logits: Float[Tensor, "examples outputs"],
    labels: Shaped[Tensor, "examples ..."],
    loss: LossName,
    label_smoothing: float,
) -> Float[Tensor, ""]:
    """Compute the mean loss over the examples, as the recipe names it.

    Args:
        logits: the outputs of a model; of a language model the loss of each text.
        labels: `Examples.loss_labels`: integer classes, or floats of the shape of the outputs.
        loss: name of the loss.
        label_smoothing: of the cross-entropy, as in the recipe.

    """
    if _is_rounding(logits):
        with torch.autocast("cuda", enabled=False):
            return mean_loss(logits.float(), labels, loss, label_smoothing)
    if loss == "binary_cross_entropy":
        return functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
    if loss == "next_token":
        return logits.mean()
    if loss == "squared_error":
        predicted = logits if labels.is_floating_point() else expected_rating(logits)
        return functional.mse_loss(predicted, labels.to(logits.dtype))
    return functional.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def per_example_loss(
    logits: Float[Tensor, "examples outputs"],
    labels: Shaped[Tensor, "examples ..."],
    loss: LossName,
    label_smoothing: float,
) -> Float[Tensor, " examples"]:
    """Compute the loss of each example, as the recipe names it; arguments as in `mean_loss`."""
    if _is_rounding(logits):
        with torch.autocast("cuda", enabled=False):
            return per_example_loss(logits.float(), labels, loss, label_smoothing)
    if loss == "binary_cross_entropy":
        return functional.binary_cross_entropy_with_logits(
            logits, labels.to(logits.dtype), reduction="none"
        ).mean(-1)
    if loss == "next_token":
        return logits.mean(-1)
    if loss == "squared_error" and labels.is_floating_point():
        return (logits - labels).square().mean(-1)
    if loss == "squared_error":
        return (expected_rating(logits) - labels).square()
    return functional.cross_entropy(
        logits, labels, reduction="none", label_smoothing=label_smoothing
    )


def _is_rounding(logits: Tensor) -> bool:
    """Return whether torch's autocast rounds the factors of products, as no loss should.

    It leaves float64 alone.
    """
    is_cast = logits.is_cuda and torch.is_autocast_enabled("cuda")
    return is_cast and logits.dtype != torch.float64


def expected_rating(
    logits: Float[Tensor, "*examples classes"],
) -> Float[Tensor, "*examples"]:
    """Compute the mean of the labels 0, 1, 2, ... under the softmax probabilities."""
    return logits.softmax(-1) @ rating_values(logits)


def rating_values(logits: Float[Tensor, "*examples classes"]) -> Float[Tensor, " classes"]:
    """Return the labels 0, 1, 2, ... with the dtype and device of the logits."""
    return torch.arange(logits.shape[-1], dtype=logits.dtype, device=logits.device)
