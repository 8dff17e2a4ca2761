"""Reads what a client's model computes, on the whole, just before its last layer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.messages import Weights, moved
from overheard.learning.features import features_of_cohort
from overheard.simulation.probe import Probe, Scene


@final
@dataclass(frozen=True, slots=True)
class MeanFeatures(Probe):
    """How far the mean input of the last layer moved, over all held-out examples.

    What a client's examples look like shows here, beside what labels they bear. Lengths of
    updates show it too, yet they shrink as a client's examples become familiar to the model and
    leap when it takes fresh ones of the same kind; these means hardly do.
    """

    def read(
        self, scene: Scene, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients features"]:
        """Two forward passes over the held-out examples for the first client, one a client."""
        local = (moved(scene.broadcast, delta) for delta in deltas)
        (before,) = _means(scene, [scene.broadcast])
        return torch.stack([after - before for after in _means(scene, local)])


def _means(scene: Scene, cohort: Iterable[Weights]) -> list[Tensor]:
    return [
        features.double().flatten(1).mean(0).float()
        for features in features_of_cohort(
            scene.build_model, cohort, scene.held_out.inputs, device=scene.device
        )
    ]
