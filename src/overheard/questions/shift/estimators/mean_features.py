"""The probe of a client model's mean inputs to its last layer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.messages import Weights, apply_update
from overheard.learning.features import features_of_models
from overheard.simulation.probe import Probe, ProbeContext


@final
@dataclass(frozen=True, slots=True)
class MeanFeatures(Probe):
    """Change of the mean input of the last layer over all held-out examples.

    It reflects a client's inputs as well as its labels. The length of an update does so too,
    but it shrinks as the examples become familiar to the model and jumps with new examples of
    the same kind; these means hardly do.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients features"]:
        """Return the changes; takes one forward pass per client and one for the broadcast."""
        local = (apply_update(context.broadcast, delta) for delta in deltas)
        (before,) = _mean_features(context, [context.broadcast])
        return torch.stack([after - before for after in _mean_features(context, local)])


def _mean_features(scene: ProbeContext, cohort: Iterable[Weights]) -> list[Tensor]:
    return [
        features.double().flatten(1).mean(0).float()
        for features in features_of_models(
            scene.build_model, cohort, scene.held_out.inputs, device=scene.device
        )
    ]
