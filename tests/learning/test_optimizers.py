"""Optimizers begin again in the same memory."""

import pytest
import torch
from torch import Tensor

from overheard.learning.optimizers import Optimizer, build_optimizer
from tests.learning.cases import RECIPES, SEED
from tests.pretended_device import pretended_device


def drawn(name: str) -> Tensor:
    return torch.randn(3, 2, dtype=torch.float64, generator=SEED.child(name).generator())


def take_steps(optimizer: Optimizer, parameters: list[Tensor]) -> None:
    for step in range(3):
        gradient = drawn(f"gradient {step}").to(parameters[0].device)
        optimizer.step(parameters, [gradient + parameters[0]])


@pytest.mark.parametrize("recipe", ["momentum", "adam", "adamw", "adadelta", "proximal"])
def test_a_restarted_optimizer_equals_a_new_one(recipe: str) -> None:
    first, second = drawn("first"), drawn("second")
    new = [second.clone()]
    take_steps(build_optimizer(RECIPES[recipe], new), new)
    parameters = [first.clone()]
    optimizer = build_optimizer(RECIPES[recipe], parameters)
    take_steps(optimizer, parameters)
    parameters[0].copy_(second)
    optimizer.restart(parameters)
    take_steps(optimizer, parameters)
    assert torch.equal(parameters[0], new[0])


def test_steps_of_adam_are_counted_on_the_device() -> None:
    """As in a CUDA graph, which repeats what is there and no number of Python."""
    here = [drawn("first")]
    take_steps(build_optimizer(RECIPES["adam"], here), here)
    with pretended_device() as device:
        there = [drawn("first").to(device)]
        optimizer = build_optimizer(RECIPES["adam"], there)
        take_steps(optimizer, there)
        optimizer.restart(there)
        there[0].copy_(drawn("first"))
        take_steps(optimizer, there)
        torch.testing.assert_close(there[0].cpu(), here[0])
