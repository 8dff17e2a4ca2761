"""Which tensors of a model are sent, and which stay with every party."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from overheard.core.messages import Weights

VARIANCE = "running_var"
"""The last part of the name of the running variance of a batch norm."""


def sent_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of the model that are sent, in the order of its `state_dict`.

    These are the trainable parameters, and the floating-point buffers that the model's
    `state_dict` includes, such as the running mean and variance of a batch norm. Parameters
    without `requires_grad` are frozen and stay: every party builds the same ones. Whole numbers
    stay too, such as the number of steps that a batch norm counts.
    """
    buffers = sent_buffers(model)
    if not buffers:
        return trainable_parameters(model)
    places = {path: place for place, (path, _) in enumerate(model.named_modules())}
    both = trainable_parameters(model) | buffers
    in_order = sorted(both, key=lambda name: places[name.rpartition(".")[0]])
    return {name: both[name] for name in in_order}


def trainable_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that training changes, in the model's order."""
    return {name: one for name, one in model.named_parameters() if one.requires_grad}


def sent_buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the floating-point buffers that the model's `state_dict` includes."""
    buffers = {name: one for name, one in model.named_buffers() if one.is_floating_point()}
    if not buffers:
        return {}
    stored = model.state_dict().keys()
    return {name: one for name, one in buffers.items() if name in stored}


def unsent_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the other parameters and buffers, which every party builds for itself."""
    sent = sent_tensors(model)
    both = (*model.named_parameters(), *model.named_buffers())
    return {name: one for name, one in both if name not in sent}


def sent_shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that are sent."""
    return {name: tuple(one.shape) for name, one in sent_tensors(model).items()}


def load_sent_tensors(model: nn.Module, weights: Weights) -> None:
    """Copy weights into the model, in place; its buffers stay as they are if not sent.

    A running variance below 0, which a defense's noise can cause, counts as 0. Weights of
    other names are ignored.

    Raises:
        KeyError: if a trainable parameter is missing.

    """
    trainable = trainable_parameters(model)
    with torch.no_grad():
        for name, tensor in sent_tensors(model).items():
            if name in trainable or name in weights:
                tensor.copy_(_without_negative_variance(name, weights[name]))


def without_negative_variances(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights with each running variance at least 0."""
    return {name: _without_negative_variance(name, one) for name, one in weights.items()}


def _without_negative_variance(name: str, weight: Tensor) -> Tensor:
    return weight.clamp(min=0) if name.rpartition(".")[2] == VARIANCE else weight
