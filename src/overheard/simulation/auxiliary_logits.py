"""A probe of the outputs of a client's model on held-out auxiliary examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.messages import Weights, apply_update
from overheard.learning.evaluate import logits_of_models
from overheard.simulation.probe import Probe, ProbeContext


@final
@dataclass(frozen=True, slots=True)
class AuxiliaryLogits(Probe):
    """Outputs of each client's model on the held-out auxiliary examples, by true class.

    A reading has 2 C + 1 rows of C numbers: the mean logits of each true class, then the mean
    softmax output of each true class, then the accuracy on each class. `mean_logits`,
    `mean_softmax` and `accuracies` select them; further axes may precede.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients rows classes"]:
        """Return the outputs of each client; runs its model once on the held-out examples."""
        labels = context.held_out.labels
        by_class = _averaging(labels, context.classes)
        local_models = (apply_update(context.broadcast, delta) for delta in deltas)
        logits = logits_of_models(
            context.build_model, local_models, context.held_out.inputs, device=context.device
        )
        return torch.stack([_summary(outputs.float(), labels, by_class) for outputs in logits])


def mean_logits(
    reading: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many classes classes"]:
    """Return the mean logits: entry (k, c) is that of class c over examples of class k."""
    return reading[..., : reading.shape[-1], :]


def mean_softmax(
    reading: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many classes classes"]:
    """Return the mean softmax output, arranged as `mean_logits`; each row sums to 1."""
    return reading[..., reading.shape[-1] : 2 * reading.shape[-1], :]


def accuracies(
    reading: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many classes"]:
    """Return the share of correctly classified examples of each class (0..1)."""
    return reading[..., -1, :]


def _averaging(
    labels: Int[Tensor, " examples"], classes: int
) -> Float[Tensor, "classes examples"]:
    """Return the matrix whose row k averages over the examples of class k."""
    is_of_class = labels == torch.arange(classes).unsqueeze(1)  # (classes, examples)
    return is_of_class.float() / is_of_class.sum(1, keepdim=True)


def _summary(
    logits: Float[Tensor, "examples classes"],
    labels: Int[Tensor, " examples"],
    by_class: Float[Tensor, "classes examples"],
) -> Float[Tensor, "rows classes"]:
    is_correct = (logits.argmax(1) == labels).float().unsqueeze(1)
    parts = (by_class @ logits, by_class @ logits.softmax(1), (by_class @ is_correct).T)
    return torch.cat(parts)
