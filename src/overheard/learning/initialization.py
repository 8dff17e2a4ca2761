"""Fresh models with seeded weights."""

import torch
from torch import nn

from overheard.core.defense import BuildModel
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.seeding import seeded
from overheard.learning.sent_tensors import sent_tensors, unsent_tensors

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


def initial_weights(build_model: BuildModel, seed: Seed) -> Weights:
    """Draw the initial weights of a federation: the tensors that are sent."""
    model = fresh_model(build_model, seed)
    return {name: one.detach().clone() for name, one in sent_tensors(model).items()}
