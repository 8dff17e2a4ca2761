"""Optimizer steps as `torch.optim` takes them, also for stacked parameters of many clients."""

from abc import ABC, abstractmethod
from copy import copy
from typing import Self, final

import torch
from torch import Tensor

from overheard.core.recipe import Recipe

Tensors = list[Tensor] | tuple[Tensor, ...]

ADAM_BETAS = (0.9, 0.999)
ADAM_EPSILON = 1e-8
ADADELTA_RHO = 0.9
ADADELTA_EPSILON = 1e-6
"""PyTorch's defaults; a recipe cannot change them."""


class Optimizer(ABC):
    """An optimizer that changes parameters in place; its state starts at zero.

    Changing tensors in place is safe here: the training engine owns the parameters, and no
    other code sees them before training ends. Every update rule is elementwise, so parameters
    of several clients may be stacked along a first axis.
    """

    @abstractmethod
    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        """Take one step in place."""

    def first(self, clients: int) -> Self:
        """Return the optimizer of the first stacked clients alone, with the same memory."""
        part = copy(self)
        part._keep_first(clients)
        return part

    @abstractmethod
    def _keep_first(self, clients: int) -> None:
        """Replace each tensor of the state by its part for the first `clients`."""

    @abstractmethod
    def state(self) -> list[Tensor]:
        """Return the tensors that a step changes, besides the parameters."""

    @abstractmethod
    def restart(self, parameters: Tensors, corrections: Tensors = ()) -> None:
        """Begin as for new parameters, in the same memory, as a CUDA graph needs it.

        Args:
            parameters: as in `build_optimizer`.
            corrections: take the place of as many as there were; () = those stay.

        """


def build_optimizer(
    recipe: Recipe, parameters: Tensors, corrections: Tensors = ()
) -> Optimizer:
    """Build the optimizer that the recipe names.

    Args:
        recipe: how clients train.
        parameters: with the values of the broadcast, from which the proximal term is measured.
        corrections: added to the gradient of each parameter in every step; () = nothing.

    """
    terms = _AddedTerms(recipe, parameters, corrections)
    if recipe.optimizer in ("adam", "adamw"):
        return _Adam(recipe, parameters, terms)
    if recipe.optimizer == "adadelta":
        return _Adadelta(recipe, parameters, terms)
    return _Sgd(recipe, parameters, terms)


@final
class _AddedTerms:
    """What is added to the gradient of the loss: L2 penalty, proximal term, corrections."""

    def __init__(self, recipe: Recipe, parameters: Tensors, corrections: Tensors) -> None:
        self._recipe = recipe
        self._decay = 0.0 if recipe.optimizer == "adamw" else recipe.weight_decay
        self._corrections = list(corrections)
        self._anchors = [one.detach().clone() for one in parameters] if recipe.proximal else []

    def add(self, parameters: Tensors, gradients: Tensors) -> Tensors:
        """Return the gradients with all terms; they are not changed in place."""
        if self._decay:
            gradients = torch._foreach_add(gradients, parameters, alpha=self._decay)
        if self._anchors:
            moved = torch._foreach_sub(parameters, self._anchors)
            gradients = torch._foreach_add(gradients, moved, alpha=self._recipe.proximal)
        if self._corrections:
            gradients = torch._foreach_add(gradients, self._corrections)
        return gradients

    def first(self, clients: int) -> "_AddedTerms":
        """Return the terms of the first stacked clients alone, with the same memory."""
        part = copy(self)
        part._anchors = [old[:clients] for old in self._anchors]
        part._corrections = [old[:clients] for old in self._corrections]
        return part

    def restart(self, parameters: Tensors, corrections: Tensors) -> None:
        """Measure the proximal term from these parameters, and replace the corrections."""
        if self._anchors:
            torch._foreach_copy_(self._anchors, list(parameters))
        if corrections:
            torch._foreach_copy_(self._corrections, list(corrections))


@final
class _Sgd(Optimizer):
    def __init__(self, recipe: Recipe, parameters: Tensors, terms: _AddedTerms) -> None:
        self._recipe = recipe
        self._terms = terms
        self._velocity = _zeros(parameters) if recipe.momentum else []

    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        gradients = self._terms.add(parameters, gradients)
        if self._recipe.momentum:
            torch._foreach_mul_(self._velocity, self._recipe.momentum)
            torch._foreach_add_(self._velocity, gradients)
            gradients = self._velocity
        torch._foreach_add_(parameters, gradients, alpha=-self._recipe.rate)

    def _keep_first(self, clients: int) -> None:
        self._terms = self._terms.first(clients)
        self._velocity = [old[:clients] for old in self._velocity]

    def state(self) -> list[Tensor]:
        return list(self._velocity)

    def restart(self, parameters: Tensors, corrections: Tensors = ()) -> None:
        self._terms.restart(parameters, corrections)
        if self._velocity:
            torch._foreach_zero_(self._velocity)


@final
class _Adam(Optimizer):
    """Kingma and Ba 2015, Algorithm 1.

    Weight decay is added to the gradient. In AdamW (Loshchilov and Hutter 2019, Algorithm 2) it
    instead multiplies the weights, by 1 - rate * weight_decay as in PyTorch.
    """

    def __init__(self, recipe: Recipe, parameters: Tensors, terms: _AddedTerms) -> None:
        self._recipe = recipe
        self._kept = 1.0
        if recipe.optimizer == "adamw":
            self._kept = 1 - recipe.rate * recipe.weight_decay
        self._terms = terms
        # On a GPU the count is there too, so that a CUDA graph of a step counts.
        device = parameters[0].device
        self._steps: int | Tensor = 0
        if device.type != "cpu":
            self._steps = torch.zeros((), dtype=torch.float64, device=device)
        self._mean = _zeros(parameters)
        self._square = _zeros(parameters)

    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        self._steps += 1
        beta1, beta2 = ADAM_BETAS
        gradients = self._terms.add(parameters, gradients)
        if self._kept != 1:
            torch._foreach_mul_(parameters, self._kept)
        torch._foreach_lerp_(self._mean, gradients, 1 - beta1)
        torch._foreach_mul_(self._square, beta2)
        torch._foreach_addcmul_(self._square, gradients, gradients, 1 - beta2)
        scale = torch._foreach_sqrt(self._square)
        root = (1 - beta2**self._steps) ** 0.5
        step_size = self._recipe.rate / (1 - beta1**self._steps)
        if isinstance(root, Tensor) and isinstance(step_size, Tensor):
            torch._foreach_div_(scale, root.to(scale[0].dtype))
            torch._foreach_add_(scale, ADAM_EPSILON)
            torch._foreach_div_(scale, -step_size.to(scale[0].dtype))
            torch._foreach_addcdiv_(parameters, self._mean, scale)
            return
        torch._foreach_div_(scale, root)
        torch._foreach_add_(scale, ADAM_EPSILON)
        torch._foreach_addcdiv_(parameters, self._mean, scale, -step_size)

    def _keep_first(self, clients: int) -> None:
        self._terms = self._terms.first(clients)
        self._mean = [old[:clients] for old in self._mean]
        self._square = [old[:clients] for old in self._square]

    def state(self) -> list[Tensor]:
        count = [self._steps] if isinstance(self._steps, Tensor) else []
        return [*self._mean, *self._square, *count]

    def restart(self, parameters: Tensors, corrections: Tensors = ()) -> None:
        self._terms.restart(parameters, corrections)
        if isinstance(self._steps, Tensor):
            self._steps.zero_()
        else:
            self._steps = 0
        torch._foreach_zero_(self._mean)
        torch._foreach_zero_(self._square)


@final
class _Adadelta(Optimizer):
    """Zeiler 2012, Algorithm 1, with a learning rate, as in PyTorch."""

    def __init__(self, recipe: Recipe, parameters: Tensors, terms: _AddedTerms) -> None:
        self._recipe = recipe
        self._terms = terms
        self._square = _zeros(parameters)
        self._square_change = _zeros(parameters)

    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        gradients = self._terms.add(parameters, gradients)
        torch._foreach_mul_(self._square, ADADELTA_RHO)
        torch._foreach_addcmul_(self._square, gradients, gradients, 1 - ADADELTA_RHO)
        scale = torch._foreach_add(self._square, ADADELTA_EPSILON)
        torch._foreach_sqrt_(scale)
        change = torch._foreach_add(self._square_change, ADADELTA_EPSILON)
        torch._foreach_sqrt_(change)
        torch._foreach_div_(change, scale)
        torch._foreach_mul_(change, gradients)
        torch._foreach_mul_(self._square_change, ADADELTA_RHO)
        torch._foreach_addcmul_(self._square_change, change, change, 1 - ADADELTA_RHO)
        torch._foreach_add_(parameters, change, alpha=-self._recipe.rate)

    def _keep_first(self, clients: int) -> None:
        self._terms = self._terms.first(clients)
        self._square = [old[:clients] for old in self._square]
        self._square_change = [old[:clients] for old in self._square_change]

    def state(self) -> list[Tensor]:
        return [*self._square, *self._square_change]

    def restart(self, parameters: Tensors, corrections: Tensors = ()) -> None:
        self._terms.restart(parameters, corrections)
        torch._foreach_zero_(self._square)
        torch._foreach_zero_(self._square_change)


def _zeros(parameters: Tensors) -> list[Tensor]:
    return [torch.zeros_like(parameter, requires_grad=False) for parameter in parameters]
