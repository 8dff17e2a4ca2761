"""The inputs of the last layer of trained models."""

from collections.abc import Iterable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.messages import Weights
from overheard.learning.custom_networks.single_output import without_output_hooks
from overheard.learning.evaluate import logits_of_models
from overheard.learning.last_layer import last_linear_module


def features_of_models(
    build_model: BuildModel,
    models: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    *,
    batch: int = 500,
    device: torch.device | str = "cpu",
) -> Iterator[Float[Tensor, "examples features"]]:
    """Yield the inputs of the last layer of each model, in order, on the CPU.

    The logits are  features @ weight.T + bias.
    """
    build_headless = partial(build_without_last_layer, build_model)
    return logits_of_models(build_headless, models, inputs, batch=batch, device=device)


def build_without_last_layer(build_model: BuildModel) -> nn.Module:
    """Build the model without its last layer; it returns that layer's inputs."""
    model = without_output_hooks(build_model())
    place = last_linear_module(model)
    if not place:
        return nn.Identity()
    if type(model) is nn.Sequential and place == str(len(model) - 1):
        # A shorter plain MLP is still one, and keeps its speed.
        return model[:-1]
    parent, _, name = place.rpartition(".")
    setattr(model.get_submodule(parent), name, nn.Identity())
    return model
