"""Stacked networks of any architecture that `torch.func.vmap` can run."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from overheard.core.recipe import LossName
from overheard.learning.engines.dropout_noise import DropoutNoise
from overheard.learning.engines.private_gradients import (
    build_example_gradients,
    clip_factors,
    example_slices,
)
from overheard.learning.engines.stacked_networks import StackedNetworks, write_by_autograd
from overheard.learning.layer_calls import LayersWrittenOut
from overheard.learning.sent_tensors import trainable_parameters


@final
class VmappedNetworks(StackedNetworks):
    """Stacked networks whose output depends only on parameters and inputs.

    Recurrent layers and bags of word vectors are written out. The gradient of a table has a row
    for each word, also for words that a batch does not have. On a GPU torch sorts the words
    and adds the gradients of each in that order, so that two runs are equal.

    On a CPU this is no faster than one client at a time (0.8 to 1.1 times a plain loop for
    convolutions). It is meant for GPUs, which a single small network leaves idle.
    """

    def __init__(
        self,
        model: nn.Module,
        label_smoothing: float = 0.0,
        loss: LossName = "cross_entropy",
    ) -> None:
        self._smoothing = label_smoothing
        self._loss = loss
        names = list(trainable_parameters(model))

        def run_one(parameters: Sequence[Tensor], inputs: Tensor) -> Tensor:
            with LayersWrittenOut():
                logits: Tensor = functional_call(
                    model, dict(zip(names, parameters, strict=True)), (inputs,)
                )
            return logits

        self._forward = vmap(run_one)
        self._names = names
        self._example_gradients = vmap(build_example_gradients(model, loss, label_smoothing))

    def logits(
        self,
        parameters: Sequence[Shaped[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
    ) -> Float[Tensor, "clients examples classes"]:
        """Run the network of each client on its own inputs."""
        # The fused attention of torch 2.11 on an H200 refuses a stack in its backward pass, as
        # "LSE is not correctly aligned".
        with sdpa_kernel(SDPBackend.MATH):
            logits: Tensor = self._forward(parameters, inputs)
        return logits

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
        """Write the gradient of each client's loss in place, and return the losses."""
        if clip is not None:
            return self._write_clipped(gradients, parameters, inputs, labels, weights, clip)
        return write_by_autograd(
            self.logits,
            gradients,
            parameters,
            inputs,
            labels,
            weights,
            loss=self._loss,
            label_smoothing=self._smoothing,
        )

    def _write_clipped(
        self,
        sums: Sequence[Tensor],
        parameters: Sequence[Tensor],
        inputs: Tensor,
        labels: Tensor,
        weights: Tensor,
        clip: float,
    ) -> Tensor:
        """Write the sum of each client's clipped gradients in place, and return the losses."""
        torch._foreach_zero_(list(sums))
        losses = weights.new_zeros(len(weights))
        by_name = dict(zip(self._names, parameters, strict=True))
        bytes_each = sum(one.numel() * one.element_size() for one in parameters)
        for part in example_slices(inputs.shape[1], bytes_each, inputs.device):
            found, each = self._example_gradients(by_name, inputs[:, part], labels[:, part])
            weight = weights[:, part]  # (clients, examples)
            entries = [one.reshape(*one.shape[:2], -1) for one in found.values()]
            squares = torch.stack([one.square().sum(2) for one in entries])
            factors = weight * clip_factors(squares.sum(0) * weight.square(), clip)
            for total, name in zip(sums, self._names, strict=True):
                total.add_(torch.einsum("ce,ce...->c...", factors, found[name]))
            losses += (each * weight).sum(1)
        return losses


def runs_under_vmap(model: nn.Module, inputs: Shaped[Tensor, "examples ..."]) -> bool:
    """Return whether `VmappedNetworks` can run this network.

    It cannot where a forward pass draws random numbers, or where what it computes depends on
    the numbers of its tensors.

    Args:
        model: in training, on the CPU.
        inputs: examples of which the first is tried.

    """
    weights = list(trainable_parameters(model).values())
    example = inputs[:1].cpu()
    if example.is_floating_point() and weights:
        example = example.to(weights[0].dtype)
    try:
        with torch.no_grad():
            stack = [weight.expand(2, *weight.shape) for weight in weights]
            VmappedNetworks(model).logits(stack, example.expand(2, *example.shape))
    except RuntimeError:
        return False
    return True
