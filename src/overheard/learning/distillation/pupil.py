"""The network that learns from synthetic examples, from the same first weights each time."""

from collections.abc import Hashable
from functools import lru_cache, partial
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

KEPT = 8
"""Networks whose recorded steps are kept at most, those used last."""


@final
class SyntheticPupil:
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
        dtype = next(iter(start.values())).dtype
        self.unroll = _unroll_of(build_model, at_once, dtype, device)
        self.model = self.unroll.model
        self.names = [name for name, _ in self.model.named_parameters()]
        self.start = [start[name].to(device) for name in self.names]
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


def _unroll_of(
    build_model: BuildModel, at_once: int, dtype: torch.dtype, device: torch.device | str
) -> Unroll:
    """One that was used before for such a network, if it still is there.

    To record the steps of a small network takes one to three seconds, and the federations of an
    audit have the same one. Networks are alike if they are built by the same call, such as that
    of an equal `Model` for an equal task.
    """
    call: tuple[Hashable, ...] = (build_model, (), ())
    if isinstance(build_model, partial):
        keywords = tuple(sorted(build_model.keywords.items()))
        call = (build_model.func, build_model.args, keywords)
    try:
        hash(call)
    except TypeError:
        call = (build_model, (), ())
    return _built(*call, at_once, dtype, str(device))


@lru_cache(maxsize=KEPT)
def _built(
    build: BuildModel,
    args: tuple[Hashable, ...],
    keywords: tuple[tuple[str, Hashable], ...],
    at_once: int,
    dtype: torch.dtype,
    device: str,
) -> Unroll:
    model = _smooth(partial(build, *args, **dict(keywords)))
    return Unroll(model.to(device, dtype), at_once)


def _smooth(build_model: BuildModel) -> nn.Module:
    model = fresh(build_model, Seed(0))
    if embeds_tokens(model) or is_recurrent(model) or draws_at_random(model):
        raise PlanError(
            "distilled data are numbers that a smooth network without dropout is trained "
            "on: take images or tables, and a model such as conv_net or mlp"
        )
    return model
