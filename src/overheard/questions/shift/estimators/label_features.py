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

SOFTMAX_FEATURES = 2
"""The first features of outputs: the softmax on own-label and on other examples."""


def label_features(
    build_model: BuildModel,
    broadcasts: Sequence[Weights],
    deltas: Sequence[Weights],
    held_out: Examples,
    device: str = "cpu",
) -> Float[Tensor, "pairs classes features"]:
    """Return features of each label, for pairs of a broadcast and an update.

    The first are the change of its row of the last layer, on average, and of its bias. Then
    follow the changes of its softmax output and of its logit, on held-out examples of the label
    and of all others. The last are both softmax outputs before the update. Outputs are relative
    to those of other labels. Logits before the update are left out, as they depend most on
    which examples are held out.

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
    after = (
        apply_update(start, delta) for start, delta in zip(broadcasts, deltas, strict=True)
    )
    old, new = (
        _output_features(
            logits_of_models(build_model, models, held_out.inputs, device=device),
            held_out.labels,
            rows.shape[1],
        )
        for models in (broadcasts, after)
    )
    weights = torch.stack((rows, bias - bias.mean(1, keepdim=True)), -1)
    return torch.cat((weights, new - old, old[..., :SOFTMAX_FEATURES]), -1)


def _output_features(
    logits_by_model: Iterable[Tensor], labels: Int[Tensor, " examples"], classes: int
) -> Float[Tensor, "models classes features"]:
    """Return outputs on own-label and on other examples: the softmax, then the logits."""
    is_of_class = (labels == torch.arange(classes)[:, None]).double()  # (classes, examples)
    mean_over_class = is_of_class / is_of_class.sum(1, keepdim=True)
    means = [
        torch.stack(
            (mean_over_class @ logits.double().softmax(1), mean_over_class @ logits.double())
        )
        for logits in logits_by_model
    ]
    outputs = torch.stack(means, 1)  # (kinds, models, true classes, classes)
    centred = outputs - outputs.mean(-1, keepdim=True)
    own = centred.diagonal(dim1=-2, dim2=-1)
    softmax, logits = torch.stack((own, centred.sum(-2) - own), -1)
    return torch.cat((softmax, logits), -1)
