"""Features of an update that tell how numbers to predict are distributed."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float

from overheard.core.defense import BuildModel
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.learning.evaluate import logits_of_models, logits_of_updates
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import LastLayer, find_last_layer

MOST_PROBED = 200
"""The most of the attacker's examples on which a model is run."""

MOST_WEIGHTS = 256
"""The most changes of weights that are features."""

SMALLEST_NORM = 1e-12
"""So that the logarithm of an update of zeros is finite."""


def update_features(
    build_model: BuildModel, start: Weights, deltas: Sequence[Weights], probed: Examples
) -> Iterator[Float[np.ndarray, " features"]]:
    """Yield the features of each update.

    The mean residual of a client moves the last layer's bias, and its inputs move the weights.
    So the features are the changes of both, the changes of the model's outputs on the
    attacker's examples (mean, deviation, correlation with the numbers), and the logarithms of
    the norms of all tensors.

    Args:
        build_model: builds the network.
        start: the broadcast.
        deltas: the updates.
        probed: the attacker's examples, without classes; the first are taken.

    """
    layer = _last_layer(build_model)
    few = probed.take(torch.arange(min(len(probed), MOST_PROBED)))
    rows = few.loss_labels.double()
    standard = (rows - rows.mean(0)) / rows.std(0, correction=0).clamp(min=SMALLEST_NORM)
    (before,) = logits_of_models(build_model, [start], few.inputs)
    outputs = logits_of_updates(build_model, start, deltas, few.inputs)
    for delta, after in zip(deltas, outputs, strict=True):
        change = after.double() - before.double()
        parts = [
            change.mean(0),
            change.std(0, correction=0),
            (change * standard).mean(0),
            (after.double() * standard).mean(0),
            torch.stack(
                [one.double().norm().clamp(min=SMALLEST_NORM).log() for one in delta.values()]
            ),
        ]
        if layer is not None:
            parts.append(delta[layer.weight].double().flatten()[:MOST_WEIGHTS])
            parts += [] if layer.bias is None else [delta[layer.bias].double().flatten()]
        found: np.ndarray = torch.cat(parts).numpy(force=True)
        yield found


def _last_layer(build_model: BuildModel) -> LastLayer | None:
    try:
        return find_last_layer(model_structure(build_model))
    except NeedsError:
        return None


def are_finite(delta: Weights) -> bool:
    """Return whether all numbers of an update are finite."""
    return all(bool(one.isfinite().all()) for one in delta.values())
