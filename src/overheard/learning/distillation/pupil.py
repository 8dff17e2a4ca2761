"""The network that learns from synthetic examples, from the same first weights each time."""

from typing import final

import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.architecture import draws_at_random, embeds_tokens, is_recurrent
from overheard.learning.distillation.synthetic import Synthetic
from overheard.learning.distillation.unroll import Unroll
from overheard.learning.initial import fresh


@final
class Pupil:
    """Learns from sets of synthetic examples.

    Args:
        build_model: gives the network; its own weights are not used.
        start: weights before each training.
        at_once: examples that a step learns from.
        device: where to compute.

    Attributes:
        model: the network.
        names: of its parameters, in order.
        start: the first weights in that order, on the device.
        unroll: trains it, and walks back through training.
        device: where to compute.

    Raises:
        PlanError: if numbers that are no real examples cannot be told through such a network.

    """

    def __init__(
        self,
        build_model: BuildModel,
        start: Weights,
        at_once: int,
        device: torch.device | str,
    ) -> None:
        model = _smooth(build_model).to(device)
        self.names = [name for name, _ in model.named_parameters()]
        self.start = [start[name].to(device) for name in self.names]
        self.model = model.to(self.start[0].dtype)
        self.unroll = Unroll(self.model, at_once)
        self.device = device

    def train(self, examples: Synthetic) -> list[Weights]:
        """The weights after one pass over each member's set, on the cpu."""
        told = self.unroll.train(self.start, examples.map(lambda one: one.to(self.device)))
        return [
            dict(zip(self.names, (one[number].cpu() for one in told), strict=True))
            for number in range(len(examples.rates))
        ]

    @property
    def size(self) -> int:
        """Bytes of the weights of one member."""
        return sum(one.numel() * one.element_size() for one in self.start)

    def on_device(self, numbers: Tensor) -> Tensor:
        """Numbers where the network computes, of the kind that it computes with."""
        return numbers.to(self.device, self.start[0].dtype)


def _smooth(build_model: BuildModel) -> nn.Module:
    model = fresh(build_model, Seed(0))
    if embeds_tokens(model) or is_recurrent(model) or draws_at_random(model):
        raise PlanError(
            "distilled data are numbers that a smooth network without dropout is trained "
            "on: take images or tables, and a model such as conv_net or mlp"
        )
    return model
