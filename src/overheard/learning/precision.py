"""The precision of products on a GPU."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock

import torch

from overheard.core.recipe import Precision, Recipe

# Typed as object, as torch does not name the types of these places.
_GPU_PLACES: tuple[object, ...] = (
    getattr(torch.backends.cudnn, "conv", None),
    getattr(torch.backends.cudnn, "rnn", None),
    torch.backends.cuda.matmul,
)
_CPU_PLACES: tuple[object, ...] = tuple(
    getattr(torch.backends.mkldnn, product, None) for product in ("conv", "rnn", "matmul")
)
_GENERAL_PLACES: tuple[object, ...] = (torch.backends, torch.backends.cudnn)
_OLD_PLACES: tuple[object, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)

_NEW, _OLD = "fp32_precision", "allow_tf32"
_HAS_NEW_SETTINGS = all(hasattr(one, _NEW) for one in _GPU_PLACES + _CPU_PLACES)
"""Whether this is torch 2.9 or later, where reading old settings beside new ones fails."""

_lock = Lock()
_running = dict[object, Precision]()
"""The precision of each block that is running, in the order in which they began."""

_before = list[object]()
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

    Products of float64 numbers are not rounded, nor is anything on a CPU. These settings of
    torch hold for the whole process; once no block is running, they are as they were before.
    """
    block = object()
    with _lock:
        if not _running:
            _before[:] = _read_settings()
        _running[block] = precision
        _write_settings(_settings_of(precision))
    try:
        with _autocast() if precision == "bf16" else nullcontext():
            yield
    finally:
        with _lock:
            del _running[block]
            # Blocks of several threads need not end in the order in which they began.
            last = next(reversed(_running.values()), None)
            _write_settings(_before if last is None else _settings_of(last))


def step_precision(recipe: Recipe) -> Precision:
    """Return the precision of the steps of training.

    Layers under torch's autocast hide the factors from which the gradients of single examples
    are made, so DP-SGD rounds to TF32 in place of bfloat16.
    """
    is_private = recipe.private_steps is not None
    return "tf32" if is_private and recipe.precision == "bf16" else recipe.precision


def _autocast() -> AbstractContextManager[None]:
    """Round the factors of layers on a GPU to bfloat16; nothing without a GPU."""
    if not torch.cuda.is_available():
        return nullcontext()
    # Rounded weights are not kept, as steps change the weights in place.
    return torch.autocast("cuda", torch.bfloat16, cache_enabled=False)


def _settings_of(precision: Precision) -> list[object]:
    """Return torch's settings for a precision, in the order of `_read_settings`."""
    is_rounded = precision != "float32"
    if not _HAS_NEW_SETTINGS:
        return [is_rounded for _ in _OLD_PLACES]
    of_gpu = "tf32" if is_rounded else "ieee"
    return [*(of_gpu for _ in _GPU_PLACES), *("ieee" for _ in _CPU_PLACES)]


def _read_settings() -> list[object]:
    """Return torch's settings; "none" = torch takes a more general one, which is left alone."""
    if not _HAS_NEW_SETTINGS:
        return [getattr(one, _OLD) for one in _OLD_PLACES]
    general = []
    for one in _GENERAL_PLACES:  # the most general one first, so that none shows through
        general.append(getattr(one, _NEW))
        setattr(one, _NEW, "none")
    found = [getattr(one, _NEW) for one in _GPU_PLACES + _CPU_PLACES]
    for one, setting in zip(_GENERAL_PLACES, general, strict=True):
        setattr(one, _NEW, setting)
    return found


def _write_settings(settings: list[object]) -> None:
    if _HAS_NEW_SETTINGS:
        for place, setting in zip(_GPU_PLACES + _CPU_PLACES, settings, strict=True):
            setattr(place, _NEW, setting)
    else:
        for place, setting in zip(_OLD_PLACES, settings, strict=True):
            setattr(place, _OLD, setting)
