"""The gradients of DP-SGD: clipped for each example, summed, and with noise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from overheard.core.recipe import LossName, PrivateSteps
from overheard.core.seeds import Seed
from overheard.learning.architecture import has_embedding, is_recurrent
from overheard.learning.loss import per_example_loss
from overheard.learning.sent_tensors import trainable_parameters

SLICE_BYTES = 2**26
"""The most memory for the gradients of single examples, so that they stay near the cache."""

SMALLEST_NORM = 1e-6
"""Added to each norm, as Opacus does, so that none is 0."""


def clip_factors(
    squared_norms: Float[Tensor, "*examples"], clip: float
) -> Float[Tensor, "*examples"]:
    """Return the factor that clips each gradient, given its squared L2 norm."""
    return (clip / (squared_norms.sqrt() + SMALLEST_NORM)).clamp(max=1)


def add_noise(
    sums: Sequence[Tensor], private: PrivateSteps, examples: int, generator: torch.Generator
) -> None:
    """Turn the sum of one client's clipped gradients into its noisy mean, in place.

    Args:
        sums: by parameter.
        private: clip, noise and batches.
        examples: number of the client's examples.
        generator: draws the noise, for all parameters in order.

    """
    divisor = examples / private.batches
    if private.noise_multiplier:
        deviation = private.noise_multiplier * private.clip
        for one in sums:
            draw = torch.randn(
                one.shape, generator=generator, dtype=one.dtype, device=one.device
            )
            one.add_(draw, alpha=deviation)
    torch._foreach_div_(list(sums), divisor)


def noise_generator(seed: Seed, round: int, name: str, device: torch.device) -> torch.Generator:
    """Return the generator of a client's noise in a round, the same for all engines."""
    return seed.child("gradient noise", round, name).generator(device)


def example_slices(examples: int, bytes_each: int) -> Iterator[slice]:
    """Split examples so that the gradients of each part fit into `SLICE_BYTES`."""
    size = max(1, SLICE_BYTES // bytes_each)
    return (slice(begin, begin + size) for begin in range(0, examples, size))


def build_example_gradients(
    model: nn.Module, loss: LossName, label_smoothing: float
) -> Callable[[Mapping[str, Tensor], Tensor, Tensor], tuple[dict[str, Tensor], Tensor]]:
    """Build a function from parameters, inputs and labels to gradients and losses by example.

    The gradients of all examples are in memory at once.
    """

    def one_loss(parameters: Mapping[str, Tensor], example: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, dict(parameters), (example.unsqueeze(0),))
        return per_example_loss(logits, label.unsqueeze(0), loss, label_smoothing).squeeze(0)

    # Each example has its own dropout.
    run: Callable[..., tuple[dict[str, Tensor], Tensor]] = vmap(
        grad_and_value(one_loss), (None, 0, 0), randomness="different"
    )
    return run


@final
class ClippedGradients:
    """The clipped sum for one client, of any network without a batch norm.

    `vmap` runs neither recurrent nor embedding layers, so such networks run once for each
    example, which takes about as many times longer as a batch has examples.
    """

    def __init__(self, model: nn.Module, loss: LossName, label_smoothing: float) -> None:
        self._model, self._loss, self._smoothing = model, loss, label_smoothing
        self._parameters = trainable_parameters(model)
        self._bytes = sum(one.numel() * one.element_size() for one in self._parameters.values())
        self._is_looped = is_recurrent(model) or has_embedding(model)
        self._run = build_example_gradients(model, loss, label_smoothing)

    def clipped_sum(
        self,
        inputs: Shaped[Tensor, "examples ..."],
        labels: Shaped[Tensor, "examples ..."],
        clip: float,
    ) -> tuple[list[Tensor], Float[Tensor, ""]]:
        """Return the sum of the clipped gradients, by parameter, and that of the losses."""
        sums = [torch.zeros_like(one) for one in self._parameters.values()]
        loss = sums[0].new_zeros(())
        bytes_each = SLICE_BYTES if self._is_looped else self._bytes
        for part in example_slices(len(inputs), bytes_each):
            gradients, values = self._gradients(inputs[part], labels[part])
            squares = [one.flatten(1).square().sum(1) for one in gradients]
            factors = clip_factors(torch.stack(squares).sum(0), clip)  # (examples)
            for total, one in zip(sums, gradients, strict=True):
                total.add_(torch.tensordot(factors, one, 1))
            loss += values.sum()
        return sums, loss

    def _gradients(self, inputs: Tensor, labels: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the gradient and the loss of each of these examples, by parameter."""
        if not self._is_looped:
            start = {name: one.detach() for name, one in self._parameters.items()}
            gradients, losses = self._run(start, inputs, labels)
            return list(gradients.values()), losses
        losses = per_example_loss(self._model(inputs), labels, self._loss, self._smoothing)
        found = torch.autograd.grad(losses.sum(), list(self._parameters.values()))
        return [one.unsqueeze(0) for one in found], losses.detach()
