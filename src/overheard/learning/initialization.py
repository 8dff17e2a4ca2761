"""Fresh models with seeded weights, and models with given ones."""

import torch
from torch import nn

from overheard.core.defense import BuildModel
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.seeding import seeded
from overheard.learning.sent_tensors import (
    load_sent_tensors,
    sent_tensors,
    unsent_tensors,
)

SHARED = Seed(0)
"""The seed of the tensors that are never sent, which every party must build alike."""


def fresh_model(build_model: BuildModel, seed: Seed) -> nn.Module:
    """Build the model with weights drawn from the seed.

    Tensors that are never sent, such as frozen parameters, are the same for every seed. The
    state of torch's global generator, from which constructors draw, is restored.
    """
    with seeded(seed):
        model = build_model()
    kept = unsent_tensors(model)
    if kept and seed != SHARED:
        with seeded(SHARED), torch.no_grad():
            shared = unsent_tensors(build_model())
            for name, tensor in kept.items():
                tensor.copy_(shared[name])
    return model


def model_at(
    build_model: BuildModel, weights: Weights, device: torch.device | str
) -> nn.Module:
    """Return the model with these weights and of their dtype, without dropout.

    Its outputs can be differentiated, on a GPU too.
    """
    model = fresh_model(build_model, Seed(0)).to(device).eval()
    model.to(dtype=next(iter(weights.values())).dtype)
    load_sent_tensors(model, weights)
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            _leave_cudnn(module)
    return model


def _leave_cudnn(module: nn.RNNBase) -> None:
    """Let a recurrent layer run without cuDNN, which cannot differentiate it in evaluation."""
    before = list[bool]()

    def switch_off(*_: object) -> None:
        before.append(torch.backends.cudnn.enabled)
        torch.backends.cudnn.enabled = False

    def switch_back(*_: object) -> None:
        torch.backends.cudnn.enabled = before.pop()

    module.register_forward_pre_hook(switch_off)
    module.register_forward_hook(switch_back, always_call=True)


def model_structure(build_model: BuildModel) -> nn.Module:
    """Build the model for its modules and the shapes of its tensors; their numbers are unset.

    Nothing is drawn and no memory is filled, which takes most of the time of building a model.
    A model that cannot be built on torch's meta device is built as usual.
    """
    try:
        with torch.device("meta"):
            return build_model()
    except Exception:  # the constructor needs the numbers, in whatever way
        return fresh_model(build_model, SHARED)


def initial_weights(build_model: BuildModel, seed: Seed) -> Weights:
    """Draw the initial weights of a federation: the tensors that are sent."""
    model = fresh_model(build_model, seed)
    return {name: one.detach().clone() for name, one in sent_tensors(model).items()}
