"""Features from probe readings: one token per class, or one flat vector per client."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.simulation.auxiliary_logits import mean_logits, mean_softmax
from overheard.simulation.class_gradient_fit import common_factors, row_factors

LARGEST_DEVIATION = 8.0
"""Standard deviations at which features are clipped, as divisions may produce outliers."""

TINY = 1e-12


@dataclass(frozen=True, slots=True)
class ProbeReadings:
    """Probe readings of some clients in one round.

    Args:
        last_layer_change: see `LastLayerChange`.
        outputs: see `AuxiliaryLogits`.
        broadcast_outputs: `AuxiliaryLogits` of the broadcast.
        class_gradients: see `ClassGradientFit`.
        log_sizes: natural logarithm of each client's size; None if hidden.
        steps_scale: the sum of the rates of all steps of SGD, each counted as often as momentum
            repeats it; None if sizes are hidden, or if the recipe is unknown or another one.

    """

    last_layer_change: Float[Tensor, "clients classes columns"]
    outputs: Float[Tensor, "clients answer_rows classes"]
    broadcast_outputs: Float[Tensor, "answer_rows classes"]
    class_gradients: Float[Tensor, "clients pull_rows classes"]
    log_sizes: Float[Tensor, " clients"] | None = None
    steps_scale: Float[Tensor, " clients"] | None = None


def class_matrices(readings: ProbeReadings) -> Float[Tensor, "clients classes classes kinds"]:
    """Compute features of each pair (true class, output); permuting classes permutes them."""
    logits = mean_logits(readings.outputs) - mean_logits(readings.broadcast_outputs)
    logits = logits - logits.mean(2, keepdim=True)
    softmax, start = mean_softmax(readings.outputs), mean_softmax(readings.broadcast_outputs)
    rows, bias = readings.last_layer_change[..., :-1], readings.last_layer_change[..., -1]
    products = rows @ rows.transpose(1, 2)
    products = products / (products.diagonal(dim1=1, dim2=2).sum(1)[:, None, None] + TINY)
    at_start, mean, product = row_factors(readings.class_gradients).unbind(1)
    length = mean.flatten(1).norm(dim=1)[:, None, None]
    common = common_factors(readings.class_gradients)  # (clients, two, classes)
    total = common.sum(2, keepdim=True)
    shares = (common / total.where(total.abs() > TINY, torch.inf)).clamp(-2, 2)
    kinds = (
        logits,
        softmax,
        softmax - start,
        start.expand_as(softmax),
        _by_output(bias, logits),
        products,
        _by_output(rows.sum(2), logits),
        at_start,
        mean,
        product,
        mean / (length + TINY),
        *(_by_class(factors, logits) for factors in (*common.unbind(1), *shares.unbind(1))),
    )
    return torch.stack(kinds, 3)


def class_tokens(
    matrices: Float[Tensor, "clients classes classes kinds"],
) -> Float[Tensor, "clients classes numbers"]:
    """Summarise each class by its diagonal entry, its column and its row.

    Columns and rows, without the diagonal, give their mean, largest and smallest entries.
    """
    diagonal = matrices.diagonal(dim1=1, dim2=2).transpose(1, 2)  # (clients, classes, kinds)
    others = max(1, matrices.shape[1] - 1)
    eye = torch.eye(matrices.shape[1], dtype=torch.bool, device=matrices.device)[:, :, None]
    high, low = matrices.masked_fill(eye, -torch.inf), matrices.masked_fill(eye, torch.inf)
    parts = [diagonal]
    for axis in (1, 2):
        parts += [(matrices.sum(axis) - diagonal) / others, high.amax(axis), low.amin(axis)]
    return torch.cat(parts, 2)


def flat_features(readings: ProbeReadings) -> Float[Tensor, "clients numbers"]:
    """Flatten the readings into one vector per client, with separate entries for each class."""
    logits = mean_logits(readings.outputs) - mean_logits(readings.broadcast_outputs)
    softmax = mean_softmax(readings.outputs) - mean_softmax(readings.broadcast_outputs)
    parts = [
        readings.last_layer_change,
        logits - logits.mean(2, keepdim=True),
        softmax,
        row_factors(readings.class_gradients)[:, 1],
        common_factors(readings.class_gradients),
    ]
    if readings.log_sizes is not None:
        parts.append(readings.log_sizes[:, None, None])
    return torch.cat([part.flatten(1) for part in parts], 1)


def _by_output(
    numbers: Float[Tensor, "clients classes"], like: Float[Tensor, "clients classes classes"]
) -> Float[Tensor, "clients classes classes"]:
    return numbers.unsqueeze(1).expand_as(like)


def _by_class(
    numbers: Float[Tensor, "clients classes"], like: Float[Tensor, "clients classes classes"]
) -> Float[Tensor, "clients classes classes"]:
    return numbers.unsqueeze(2).expand_as(like)
