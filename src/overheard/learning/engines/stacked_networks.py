"""The interface for running and differentiating the networks of many clients at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.recipe import LossName
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.loss import per_example_loss


class StackedNetworks(ABC):
    """Networks of one architecture, with the parameters of many clients along a first axis.

    The loss and the `label_smoothing` of its targets are arguments of the constructor.
    """

    @abstractmethod
    def logits(
        self,
        parameters: Sequence[Shaped[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
    ) -> Float[Tensor, "clients examples classes"]:
        """Run the network of each client on its own inputs."""

    @abstractmethod
    def write_gradients(
        self,
        gradients: Sequence[Float[Tensor, "clients ..."]],
        parameters: Sequence[Float[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
        labels: Shaped[Tensor, "clients examples ..."],
        weights: Float[Tensor, "clients examples"],
        noise: DropoutNoise | None = None,
        clip: float | None = None,
    ) -> Float[Tensor, " clients"]:
        """Write the gradient of each client's loss in place, and return the losses.

        A client's loss is the weighted sum of the losses of its examples.

        Args:
            gradients: where to write, in the order of the parameters.
            parameters: the parameters of each client.
            inputs: the batch of each client.
            labels: its labels.
            weights: its weights; 0 for examples that pad a batch.
            noise: draws the factors of dropout; None = nothing is dropped.
            clip: largest L2 norm of an example's gradient over all parameters, after its
                weight; None = no gradient is clipped.

        """


def write_by_autograd(
    logits: Callable[[Sequence[Tensor], Tensor], Tensor],
    gradients: Sequence[Float[Tensor, "clients ..."]],
    parameters: Sequence[Float[Tensor, "clients ..."]],
    inputs: Shaped[Tensor, "clients examples ..."],
    labels: Shaped[Tensor, "clients examples ..."],
    weights: Float[Tensor, "clients examples"],
    *,
    loss: LossName,
    label_smoothing: float,
) -> Float[Tensor, " clients"]:
    """Do what `StackedNetworks.write_gradients` does, by differentiating these logits."""
    leaves = [parameter.detach().requires_grad_() for parameter in parameters]
    with torch.enable_grad():
        each = per_example_loss(
            logits(leaves, inputs).flatten(0, 1).to(weights.dtype),
            labels.flatten(0, 1),
            loss,
            label_smoothing,
        ).view_as(weights)
        losses = (each * weights).sum(1)
        values = torch.autograd.grad(losses.sum(), leaves)
    for gradient, value in zip(gradients, values, strict=True):
        gradient.copy_(value)
    return losses.detach()
