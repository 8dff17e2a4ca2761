"""Training on synthetic examples, each time from the same initial weights."""

from collections.abc import Hashable
from functools import lru_cache, partial
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.architecture import (
    has_batch_norm,
    has_dropout,
    has_embedding,
    is_recurrent,
)
from overheard.learning.distillation.synthetic import SyntheticExamples
from overheard.learning.distillation.unrolled_training import UnrolledTraining
from overheard.learning.initialization import fresh_model
from overheard.learning.sent_tensors import sent_buffers, unsent_tensors

CACHED_NETWORKS = 8
"""Most networks whose traced steps are cached; the least recently used one is dropped."""


@final
class SyntheticTrainer:
    """A network and its training on sets of synthetic examples.

    Args:
        build_model: builds the network; its weights are not used.
        start: weights before each training.
        examples_per_step: examples per step.
        device: where to compute.

    Attributes:
        model: the network.
        names: names of its parameters, in order.
        start: initial weights in that order, on the device.
        training: the training and its backward pass.
        device: where to compute.

    Raises:
        PlanError: if such a network cannot be trained on continuous synthetic inputs.

    """

    def __init__(
        self,
        build_model: BuildModel,
        start: Weights,
        examples_per_step: int,
        device: torch.device | str,
    ) -> None:
        dtype = next(iter(start.values())).dtype
        self.training = _cached_training(build_model, examples_per_step, dtype, device)
        self.model = self.training.model
        self.names = [name for name, _ in self.model.named_parameters()]
        self.start = [start[name].to(device) for name in self.names]
        self.device = device

    def train(self, examples: SyntheticExamples) -> list[Weights]:
        """Train for one pass over each client's set, and return the weights, on the CPU."""
        weights = self.training.train(self.start, examples.map(lambda one: one.to(self.device)))
        return [
            dict(zip(self.names, (stacked[number].cpu() for stacked in weights), strict=True))
            for number in range(len(examples.rates))
        ]

    @property
    def weight_bytes(self) -> int:
        """Size of the weights of one client, in bytes."""
        return sum(one.numel() * one.element_size() for one in self.start)

    def to_device(self, numbers: Tensor) -> Tensor:
        """Convert numbers to the device and dtype of the network."""
        return numbers.to(self.device, self.start[0].dtype)


def _cached_training(
    build_model: BuildModel, at_once: int, dtype: torch.dtype, device: torch.device | str
) -> UnrolledTraining:
    """Return the cached training of such a network, or build one.

    Tracing the steps of a small network takes one to three seconds, and the federations of an
    audit share one network. Networks are equal if the same call builds them, such as that of an
    equal `Model` for an equal task.
    """
    call: tuple[Hashable, ...] = (build_model, (), ())
    if isinstance(build_model, partial):
        keywords = tuple(sorted(build_model.keywords.items()))
        call = (build_model.func, build_model.args, keywords)
    try:
        hash(call)
    except TypeError:
        call = (build_model, (), ())
    return _build_training(*call, at_once, dtype, str(device))


@lru_cache(maxsize=CACHED_NETWORKS)
def _build_training(
    build: BuildModel,
    args: tuple[Hashable, ...],
    keywords: tuple[tuple[str, Hashable], ...],
    at_once: int,
    dtype: torch.dtype,
    device: str,
) -> UnrolledTraining:
    model = _build_smooth_model(partial(build, *args, **dict(keywords)))
    return UnrolledTraining(model.to(device, dtype), at_once)


def _build_smooth_model(build_model: BuildModel) -> nn.Module:
    model = fresh_model(build_model, Seed(0))
    if has_batch_norm(model) or sent_buffers(model) or unsent_tensors(model):
        raise PlanError(
            "distillation needs a network whose parameters are all trained and sent: replace "
            "batch norm by group norm, and remove other buffers and frozen parameters"
        )
    if has_embedding(model) or is_recurrent(model) or has_dropout(model):
        raise PlanError(
            "distillation needs continuous inputs and a feed-forward network without dropout: "
            "take images or tables, and a model such as conv_net or mlp"
        )
    return model
