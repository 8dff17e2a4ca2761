"""The precision of products on a GPU."""

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from threading import Lock

import torch

from overheard.core.recipe import Precision, Recipe

# Typed as object, as torch does not name the types of these places.
_PLACES: tuple[object, ...] = tuple(
    getattr(backend, product, None)
    for backend, products in (
        (torch.backends.cudnn, ("conv", "rnn")),
        (torch.backends.cuda, ("matmul",)),
        (torch.backends.mkldnn, ("conv", "rnn", "matmul")),
    )
    for product in products
)
_GENERAL_PLACES: tuple[object, ...] = (torch.backends, torch.backends.cudnn)
_NAME = "fp32_precision"
_OF_GPU = 3
"""Number of the first of `_PLACES` that are about a GPU."""

_ARE_BY_PRODUCT = all(hasattr(one, _NAME) for one in _PLACES)
"""Whether this is torch 2.9 or later, which has a setting for each kind of product."""

_lock = Lock()
_running = dict[object, Precision]()
"""The precision of each block that is running, in the order in which they began."""

_before = list["_Settings"]()
"""Torch's settings before the first of these blocks."""


@contextmanager
def computing(precision: Precision) -> Iterator[None]:
    """Compute products of float32 numbers on a GPU with this precision, within the block.

    Torch's own default is mixed: convolutions and recurrent layers round the factors of their
    products to TF32, and matrix products do not. The precisions are

    - "float32": no factor is rounded.
    - "tf32": factors are rounded to 10 of the 23 bits of their mantissas.
    - "bf16": factors are rounded to 7 bits in the layers that torch's autocast knows, and as in
      "tf32" in other products.

    Products of float64 numbers are not rounded, nor is anything on a CPU. Convolutions have the
    same bits in each run. These settings of torch hold for the whole process; once no block is
    running, they are as they were before.
    """
    block = object()
    with _lock:
        last = next(reversed(_running.values()), None)
        if last is None:
            _hear_advice()
            _before[:] = [_Settings.read()]
        _running[block] = precision
        if last != precision:
            _Settings.of(precision).write()
    try:
        with _autocast(precision):
            yield
    finally:
        with _lock:
            in_force = next(reversed(_running.values()))
            del _running[block]
            # Blocks of several threads need not end in the order in which they began.
            last = next(reversed(_running.values()), None)
            if last != in_force:
                (_before[0] if last is None else _Settings.of(last)).write()


def step_precision(recipe: Recipe) -> Precision:
    """Return the precision of the steps of training.

    Layers under torch's autocast hide the factors from which the gradients of single examples
    are made, so DP-SGD rounds to TF32 in place of bfloat16.
    """
    is_private = recipe.private_steps is not None
    return "tf32" if is_private and recipe.precision == "bf16" else recipe.precision


def _autocast(precision: Precision) -> AbstractContextManager[None]:
    """Let layers on a GPU round their factors to bfloat16, or not; nothing without a GPU."""
    is_rounded = precision == "bf16" and torch.cuda.is_available()
    if not is_rounded and not torch.is_autocast_enabled("cuda"):
        return nullcontext()
    # Rounded weights are not kept, as steps change the weights in place.
    return torch.autocast("cuda", torch.bfloat16, enabled=is_rounded, cache_enabled=False)


@cache
def _hear_advice() -> None:
    """Let torch give its advice to users of the older settings, which it gives once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _Settings.read().write()


@dataclass(frozen=True, slots=True)
class _Settings:
    """Torch's settings of how products are computed on a GPU.

    Before torch 2.9 there was no precision by product. The older settings remain, and reading
    them fails if they differ from the new ones, so both are kept alike.

    Args:
        is_deterministic: whether cuDNN takes only algorithms whose sums are the same in each
            run.
        is_tried: whether cuDNN tries which algorithm is fastest, which differs from run to run.
        convolutions: whether cuDNN rounds to TF32.
        matmul: the precision of matrix products: "highest", "high" or "medium".
        by_product: "ieee", "tf32", or "none" where torch takes a more general setting, in the
            order of `_PLACES`; () before torch 2.9.

    """

    is_deterministic: bool
    is_tried: bool
    convolutions: bool
    matmul: str
    by_product: tuple[str, ...] = ()

    @classmethod
    def of(cls, precision: Precision) -> "_Settings":
        """Return the settings for a precision; a CPU never rounds."""
        is_rounded = precision != "float32"
        each = ["tf32" if is_rounded and place < _OF_GPU else "ieee" for place in range(6)]
        return cls(
            True,
            False,
            is_rounded,
            "high" if is_rounded else "highest",
            tuple(each) if _ARE_BY_PRODUCT else (),
        )

    @classmethod
    def read(cls) -> "_Settings":
        """Return the settings in force; those by product are changed where there are any."""
        found = list[str]()
        if _ARE_BY_PRODUCT:
            general = list[object]()
            for one in _GENERAL_PLACES:  # the most general one first, so that none shows
                general.append(getattr(one, _NAME))
                setattr(one, _NAME, "none")
            found += [getattr(one, _NAME) for one in _PLACES]
            for one, setting in zip(_GENERAL_PLACES, general, strict=True):
                setattr(one, _NAME, setting)
            for one in _PLACES:
                setattr(one, _NAME, "ieee")
        try:
            convolutions = torch.backends.cudnn.allow_tf32
        except RuntimeError:  # It differs from "ieee".
            convolutions = True
        return cls(
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
            convolutions,
            torch.get_float32_matmul_precision(),
            tuple(found),
        )

    def write(self) -> None:
        """Put the settings into force."""
        torch.backends.cudnn.deterministic = self.is_deterministic
        torch.backends.cudnn.benchmark = self.is_tried
        torch.backends.cudnn.allow_tf32 = self.convolutions
        torch.set_float32_matmul_precision(self.matmul)
        for one, setting in zip(_PLACES, self.by_product, strict=False):
            setattr(one, _NAME, setting)
