"""What an update and its broadcast tell of each label."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights, apply_update
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import find_last_layer


def label_features(
    build_model: BuildModel,
    broadcasts: Sequence[Weights],
    deltas: Sequence[Weights],
    held_out: Examples,
    device: str = "cpu",
) -> Float[Tensor, "pairs classes features"]:
    """Return features of each label, for pairs of a broadcast and an update.

    They are the change of its row of the last layer, on average, and of its bias; and, for the
    model after the update and for the broadcast, the softmax output and the logit of the label
    on held-out examples of the label, and of all other labels, relative to other labels'.

    Args:
        build_model: builds the architecture.
        broadcasts: the weights before the update.
        deltas: the update, or a mean of updates.
        held_out: examples of every class on which no simulated client trains.
        device: where to compute.

    """
    layer = find_last_layer(fresh_model(build_model, Seed(0)))
    rows = torch.stack([delta[layer.weight] for delta in deltas]).double().flatten(2).mean(2)
    bias = torch.zeros_like(rows)
    if layer.bias is not None:
        bias = torch.stack([delta[layer.bias] for delta in deltas]).double()
    after = [
        apply_update(start, delta) for start, delta in zip(broadcasts, deltas, strict=True)
    ]
    parts = [rows, bias - bias.mean(1, keepdim=True)]
    for models in (after, broadcasts):
        logits = logits_of_models(build_model, models, held_out.inputs, device=device)
        parts += _output_features(logits, held_out.labels, rows.shape[1])
    return torch.stack(parts, -1)


def _output_features(
    logits_by_model: Iterable[Tensor], labels: Int[Tensor, " examples"], classes: int
) -> list[Float[Tensor, "pairs classes"]]:
    """Return own-label and other-label outputs, of the softmax and then of the logits."""
    is_of_class = (labels == torch.arange(classes)[:, None]).double()  # (classes, examples)
    mean_over_class = is_of_class / is_of_class.sum(1, keepdim=True)
    softmax, raw = [], []
    for logits in logits_by_model:
        softmax.append(mean_over_class @ logits.double().softmax(1))
        raw.append(mean_over_class @ logits.double())
    parts = []
    for outputs in (torch.stack(softmax), torch.stack(raw)):  # (pairs, true, output)
        centred = outputs - outputs.mean(-1, keepdim=True)
        own = centred.diagonal(dim1=-2, dim2=-1)
        parts += [own, centred.sum(-2) - own]
    return parts
