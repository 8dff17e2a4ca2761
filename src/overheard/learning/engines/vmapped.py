"""Any network for many members at once, by `torch.func.vmap`."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap

from overheard.core.recipe import LossName
from overheard.learning.engines.gradients import StackedGradients
from overheard.learning.loss import loss_of_each


@final
class Vmapped(StackedGradients):
    """Serves every network that computes what it gives from parameters and inputs alone.

    On a CPU it is no faster than one member after the other (0.8 to 1.1 times a plain loop for
    convolutions): meant for GPUs, which a single small network leaves idle.
    """

    def __init__(
        self,
        model: nn.Module,
        label_smoothing: float = 0.0,
        loss: LossName = "cross_entropy",
    ) -> None:
        self._smoothing = label_smoothing
        self._loss = loss
        names = [name for name, _ in model.named_parameters()]

        def one(parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
            logits: Tensor = functional_call(
                model, dict(zip(names, parameters, strict=True)), (inputs,)
            )
            return logits

        self._forward = vmap(one)

    def logits(
        self,
        parameters: Sequence[Shaped[Tensor, "members ..."]],
        inputs: Shaped[Tensor, "members examples ..."],
    ) -> Float[Tensor, "members examples classes"]:
        """Run each member's network on its own inputs."""
        logits: Tensor = self._forward(parameters, inputs)
        return logits

    def fill(
        self,
        gradients: Sequence[Float[Tensor, "members ..."]],
        parameters: Sequence[Float[Tensor, "members ..."]],
        inputs: Shaped[Tensor, "members examples ..."],
        labels: Int[Tensor, "members examples"],
        weights: Float[Tensor, "members examples"],
    ) -> Float[Tensor, " members"]:
        """Write the gradient of each member's loss in place, and give the losses."""
        leaves = [parameter.detach().requires_grad_() for parameter in parameters]
        with torch.enable_grad():
            logits = self.logits(leaves, inputs)
            each = loss_of_each(
                logits.flatten(0, 1), labels.flatten(), self._loss, self._smoothing
            ).view_as(weights)
            losses = (each * weights).sum(1)
            found = torch.autograd.grad(losses.sum(), leaves)
        for gradient, value in zip(gradients, found, strict=True):
            gradient.copy_(value)
        return losses.detach()
