"""Reads what a client's model says about examples that it has not learned from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.messages import Weights, moved
from overheard.learning.evaluate import logits_of_cohort
from overheard.simulation.probe import Probe, Scene


@final
@dataclass(frozen=True, slots=True)
class Answers(Probe):
    """Answers of each client's model to the held-out examples, by their true class.

    2 C + 1 rows of C numbers: for each true class the mean logits, then for each true class the
    mean softmax output, then the accuracy on each class. `mean_logits`, `mean_softmax` and
    `accuracies` take them apart, whatever axes stand before.
    """

    def read(
        self, scene: Scene, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients rows classes"]:
        """One forward pass over the held-out examples a client."""
        labels = scene.held_out.labels
        by_class = _averaging(labels, scene.classes)
        local = (moved(scene.broadcast, delta) for delta in deltas)
        logits = logits_of_cohort(
            scene.build_model, local, scene.held_out.inputs, device=scene.device
        )
        return torch.stack([_summary(one.float(), labels, by_class) for one in logits])


def mean_logits(
    read: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many classes classes"]:
    """Mean logits by true class: entry (k, c) is that of class c over examples of k."""
    return read[..., : read.shape[-1], :]


def mean_softmax(
    read: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many classes classes"]:
    """Mean softmax output by true class, as `mean_logits` stands; each row sums to 1."""
    return read[..., read.shape[-1] : 2 * read.shape[-1], :]


def accuracies(
    read: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many classes"]:
    """Share of the examples of each class that the model ranks rightly (0..1)."""
    return read[..., -1, :]


def _averaging(
    labels: Int[Tensor, " examples"], classes: int
) -> Float[Tensor, "classes examples"]:
    """Row k times answers = their mean over the examples of class k."""
    belongs = labels == torch.arange(classes).unsqueeze(1)  # (classes, examples)
    return belongs.float() / belongs.sum(1, keepdim=True)


def _summary(
    logits: Float[Tensor, "examples classes"],
    labels: Int[Tensor, " examples"],
    by_class: Float[Tensor, "classes examples"],
) -> Float[Tensor, "rows classes"]:
    right = (logits.argmax(1) == labels).float().unsqueeze(1)
    parts = (by_class @ logits, by_class @ logits.softmax(1), (by_class @ right).T)
    return torch.cat(parts)
