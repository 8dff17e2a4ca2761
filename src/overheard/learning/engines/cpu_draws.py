"""Random numbers that a network draws while it trains on a GPU: the same as on a CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from overheard.core.seeds import Seed
from overheard.learning.seeding import seeded

aten = torch.ops.aten

DRAW_ONLY_FOR_DROPOUT = frozenset(
    {
        "_cudnn_rnn",
        "_efficient_attention_forward",
        "_flash_attention_forward",
        "_fused_sdp_choice",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention",
        "miopen_rnn",
    }
)
"""Kernels that draw only if they are given a rate of dropout: `drawing_on_cpu` avoids them."""


@contextmanager
def drawing_on_cpu(model: nn.Module) -> Iterator["CpuDraws"]:
    """Let what a network draws on a GPU, such as dropout, come from the CPU's generator.

    Generators of GPUs give other numbers. Attention with dropout, and recurrent layers with
    dropout between them, run as separate operations, as torch's fused kernels draw within.
    """
    has_inner_dropout = any(
        isinstance(one, nn.RNNBase) and one.dropout > 0 for one in model.modules()
    )
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = before and not has_inner_dropout
    try:
        with CpuDraws(model) as draws, sdpa_kernel(SDPBackend.MATH):
            yield draws
    finally:
        torch.backends.cudnn.enabled = before


def draws_numbers(model: nn.Module, inputs: Shaped[Tensor, "examples ..."]) -> bool:
    """Return whether a network draws random numbers in training; its buffers may change.

    Args:
        model: in training, on the device of the inputs, which is not the CPU.
        inputs: what it is tried with.

    """
    with seeded(Seed(0)), torch.no_grad(), drawing_on_cpu(model) as draws:
        model(inputs)
    return draws.were_made


# Any: an operation takes and returns tensors, numbers, and lists of them.
@final
class CpuDraws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes each operation that draws random numbers for another device on the CPU.

    `were_made` says whether there was one. Numbers are drawn in the order that a CPU has in its
    memory. The trainer has the channels of maps last there, so a tensor of four axes of a
    network with convolutions is taken for such maps.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._has_maps = any(one.dim() == 4 for one in model.parameters())
        self.were_made = False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        device = _device_of_draw(function, args, kwargs)
        if device is None:
            return function(*args, **kwargs)
        self.were_made = True
        if function is aten.native_dropout.default:
            return self._dropout(*args, **kwargs)
        return self._on_cpu(function, device, args, kwargs)

    def _dropout(
        self, numbers: Tensor, rate: float, is_training: bool | None
    ) -> tuple[Tensor, Tensor]:
        """Return the numbers after dropout, and whether each is kept, by the fused kernel."""
        if is_training is False or rate == 0:
            return numbers.clone(), torch.ones_like(numbers, dtype=torch.bool)
        drawn = self._empty_on_cpu(numbers).bernoulli_(1 - rate)
        kept = drawn.to(numbers.device).bool()
        factor = 0.0 if rate == 1 else 1 / (1 - rate)
        return numbers * kept * factor, kept

    def _on_cpu(self, function: Any, device: torch.device, args: Any, kwargs: Any) -> Any:
        """Return what an operation returns for copies on the CPU."""
        copies = list[tuple[Tensor, Tensor]]()

        def copied(one: object) -> object:
            if isinstance(one, torch.device):
                return torch.device("cpu")
            if not isinstance(one, Tensor) or one.device != device:
                return one
            copies.append((one, self._empty_on_cpu(one).copy_(one)))
            return copies[-1][1]

        results = function(*tree_map(copied, args), **tree_map(copied, kwargs))
        if function._schema.is_mutable:
            for original, copy in copies:
                original.copy_(copy)
        originals = {id(copy): original for original, copy in copies}
        return tree_map(
            lambda one: (
                originals.get(id(one), one.to(device)) if isinstance(one, Tensor) else one
            ),
            results,
        )

    def _empty_on_cpu(self, like: Tensor) -> Tensor:
        """Return an unset tensor on the CPU, with the memory order of training there."""
        are_maps = self._has_maps and like.dim() == 4
        order = torch.channels_last if are_maps else torch.preserve_format
        return torch.empty_like(like, device="cpu", memory_format=order)


def _device_of_draw(function: Any, args: Any, kwargs: Any) -> torch.device | None:
    """Return the device for which an operation draws numbers; None = none, or the CPU."""
    name = function._schema.name.removeprefix("aten::")
    if torch.Tag.nondeterministic_seeded not in function.tags or name in DRAW_ONLY_FOR_DROPOUT:
        return None
    leaves = tree_leaves((args, kwargs))
    if any(isinstance(one, torch.Generator) for one in leaves):
        return None
    if kwargs.get("device") is not None:
        device: torch.device | None = torch.device(kwargs["device"])
    else:
        found: Iterator[torch.device | None]
        found = (one.device for one in leaves if isinstance(one, Tensor))
        device = next(found, None)
    return None if device is None or device.type == "cpu" else device
