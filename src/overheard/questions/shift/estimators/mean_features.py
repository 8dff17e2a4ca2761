"""How far a client moves the mean inputs of the last layer."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights, apply_update
from overheard.learning.features import features_of_models


def mean_feature_changes(
    build_model: BuildModel,
    broadcasts: Sequence[Weights],
    deltas: Sequence[Weights],
    held_out: Examples,
    device: str = "cpu",
) -> Float[Tensor, "pairs features"]:
    """Return the change of the mean input of the last layer over all held-out examples.

    It reflects a client's inputs as well as its labels. The length of an update does so too,
    but it shrinks as the examples become familiar to the model and jumps with new examples of
    the same kind; these means hardly do.
    """
    after = (
        apply_update(start, delta) for start, delta in zip(broadcasts, deltas, strict=True)
    )
    before_means, after_means = (
        _mean_features(build_model, models, held_out, device) for models in (broadcasts, after)
    )
    return after_means - before_means


def _mean_features(
    build_model: BuildModel, models: Iterable[Weights], held_out: Examples, device: str
) -> Float[Tensor, "pairs features"]:
    features = features_of_models(build_model, models, held_out.inputs, device=device)
    return torch.stack([one.double().flatten(1).mean(0) for one in features])
