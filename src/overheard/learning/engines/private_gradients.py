"""The gradients of DP-SGD: clipped for each example, summed, and with noise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from overheard.core.recipe import LossName, PrivateSteps
from overheard.core.seeds import Seed
from overheard.learning.architecture import has_embedding, is_recurrent
from overheard.learning.layer_gradients import gradients_and_losses
from overheard.learning.loss import per_example_loss
from overheard.learning.sent_tensors import trainable_parameters

SLICE_BYTES = {"cpu": 2**26, "cuda": 2**30}
"""The most memory for the gradients of single examples. On a CPU they stay near the cache. A
GPU starts each operation of a part in about the time that a small part takes. The numbers are
fixed, because the parts decide how sums are rounded."""

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
        generator: draws the noise, for all parameters in order, on the CPU.

    """
    divisor = examples / private.batches
    if private.noise_multiplier:
        deviation = private.noise_multiplier * private.clip
        for one in sums:
            draw = torch.randn(one.shape, generator=generator, dtype=one.dtype)
            one.add_(draw.to(one.device), alpha=deviation)
    torch._foreach_div_(list(sums), divisor)


def noise_generator(seed: Seed, round: int, name: str) -> torch.Generator:
    """Return the generator of a client's noise in a round, the same for all engines."""
    return seed.child("gradient noise", round, name).generator()


def example_slices(examples: int, bytes_each: int, device: torch.device) -> Iterator[slice]:
    """Split examples so that the gradients of each part fit into `SLICE_BYTES`."""
    most = SLICE_BYTES["cpu" if device.type == "cpu" else "cuda"]
    size = max(1, most // bytes_each)
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

    Of networks with recurrent or embedding layers, whose gradients are mostly 0 or sums over
    words, gradients of examples are taken by layer, and no table is in memory for each example.
    """

    def __init__(self, model: nn.Module, loss: LossName, label_smoothing: float) -> None:
        self._model, self._loss, self._smoothing = model, loss, label_smoothing
        self._parameters = trainable_parameters(model)
        # A table that is also another layer has a gradient of its whole size.
        tables, others = set[int](), set[int]()
        for module in model.modules():
            is_table = isinstance(module, (nn.Embedding, nn.EmbeddingBag))
            held = tables if is_table else others
            held.update(id(one) for one in module.parameters(recurse=False))
        sizes = (
            one.numel() * one.element_size()
            for one in self._parameters.values()
            if id(one) not in tables - others
        )
        self._bytes = max(1, sum(sizes))  # a network may be a table alone
        self._is_by_layer = is_recurrent(model) or has_embedding(model)
        self._run = build_example_gradients(model, loss, label_smoothing)

    def clipped_sum(
        self,
        inputs: Shaped[Tensor, "examples ..."],
        labels: Shaped[Tensor, "examples ..."],
        clip: float,
    ) -> tuple[list[Tensor], Float[Tensor, ""]]:
        """Return the sum of the clipped gradients, by parameter, and that of the losses."""
        sums = {name: torch.zeros_like(one) for name, one in self._parameters.items()}
        loss = inputs.new_zeros((), dtype=next(iter(sums.values())).dtype)
        add = self._add_by_layer if self._is_by_layer else self._add
        for part in example_slices(len(inputs), self._bytes, inputs.device):
            loss += add(sums, inputs[part], labels[part], clip).sum()
        return list(sums.values()), loss

    def _add(
        self, sums: Mapping[str, Tensor], inputs: Tensor, labels: Tensor, clip: float
    ) -> Tensor:
        """Add the clipped gradients of these examples in place, and return the losses."""
        start = {name: one.detach() for name, one in self._parameters.items()}
        gradients, losses = self._run(start, inputs, labels)
        squares = [one.reshape(len(one), -1).square().sum(1) for one in gradients.values()]
        factors = clip_factors(torch.stack(squares).sum(0), clip)  # (examples)
        for name, one in gradients.items():
            sums[name].add_(torch.tensordot(factors, one, 1))
        return losses

    def _add_by_layer(
        self, sums: Mapping[str, Tensor], inputs: Tensor, labels: Tensor, clip: float
    ) -> Tensor:
        """Do what `_add` does, by layer."""
        compute_losses = partial(
            per_example_loss, loss=self._loss, label_smoothing=self._smoothing
        )
        layers, losses = gradients_and_losses(self._model, inputs, labels, compute_losses)
        squares = torch.stack([one.squares() for one in layers.values()]).sum(0)
        factors = clip_factors(squares, clip)
        for names, one in layers.items():
            for name, (part,) in names.parts_of(one.weighted_sum(factors)[None]).items():
                sums[name].add_(part.reshape(sums[name].shape))
        return losses
