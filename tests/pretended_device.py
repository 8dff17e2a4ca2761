"""A device whose tensors are on the CPU, but may not be mixed with those of the CPU.

Training on a GPU fails if one tensor of a step was left on the CPU. Without a GPU nothing shows
that. torch's fake tensors check devices, but have no numbers, so whatever reads one (a loss, an
order, a count) stops them. Tensors of this device have numbers. Each of them holds a tensor on
the CPU, on which every operation is computed after the rules of a GPU were checked.

The device is called "meta", as torch can differentiate on that one without its hardware.

Where `OVERHEARD_TEST_DEVICE` names a real device, such as "cuda", tests/test_devices.py runs
on that one.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from overheard.learning.engines.cpu_draws import DRAW_ONLY_FOR_DROPOUT

DEVICE = torch.device("meta")
"""The device."""

REAL_DEVICE = os.environ.get("OVERHEARD_TEST_DEVICE", "")
"""The real device that takes its place; "" = none."""

aten = torch.ops.aten

COPIES = {
    aten._to_copy.default,
    aten.copy_.default,
    aten._foreach_copy_.default,
    aten._local_scalar_dense.default,
}
"""Operations that read from one device and write to another."""

INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
"""Operations whose indices may be on the CPU."""

JOINING = {aten.cat.default, aten.stack.default}
"""Operations that take no number of the CPU; all others take a tensor without axes."""


class MixedDevicesError(Exception):
    """Tensors of the device and of the CPU met in one operation."""


class DeviceTensor(torch.Tensor):
    """A tensor of the device."""

    held: Tensor
    is_meta = False  # or torch warns that copying to it does nothing

    @staticmethod
    def __new__(cls, held: Tensor, requires_grad: bool = False) -> "DeviceTensor":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride() if held.layout == torch.strided else None,
            storage_offset=held.storage_offset() if held.layout == torch.strided else None,
            dtype=held.dtype,
            layout=held.layout,
            device=DEVICE,
            requires_grad=requires_grad,
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, other: "DeviceTensor") -> None:
        torch.Tensor.data.__set__(self, other)
        self.held = other.held

    # torch makes indices of a list on the device without numbers.
    def __getitem__(self, place):
        return super().__getitem__(tree_map(_index, place, is_leaf=_is_list))

    def __setitem__(self, place, numbers) -> None:
        super().__setitem__(tree_map(_index, place, is_leaf=_is_list), numbers)

    # torch reads these without an operation that could be intercepted.
    def item(self):
        return self.held.item()

    def tolist(self):
        return self.held.tolist()

    def __bool__(self) -> bool:
        return bool(self.held)

    def __float__(self) -> float:
        return float(self.held)

    def __int__(self) -> int:
        return int(self.held)

    def __index__(self) -> int:
        return self.held.__index__()

    def __repr__(self, **_: object) -> str:
        return f"DeviceTensor({self.held})"

    def __deepcopy__(self, memory: object) -> "DeviceTensor":
        return DeviceTensor(self.held.clone(), self.requires_grad)

    def numpy(self, **_: object) -> np.ndarray:
        raise TypeError("a tensor of the device must be copied to the CPU first")

    __array__ = numpy


class _Device(TorchDispatchMode):
    """Intercepts operations that create tensors on the device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


@contextmanager
def pretended_device() -> Iterator[torch.device]:
    """Return a device which exists until the block ends."""
    # torch makes no views of such tensors in inference mode, which differs in speed alone.
    no_gradients = patch.object(torch, "inference_mode", torch.no_grad)
    fused = patch.object(
        optimizer, "_get_fused_kernels_supported_devices", lambda: [DEVICE.type, "cpu"]
    )
    with no_gradients, fused, _Device():
        yield DEVICE


@contextmanager
def device_under_test() -> Iterator[torch.device]:
    """Return the real device that the environment names, or else the pretended one."""
    if REAL_DEVICE:
        yield torch.device(REAL_DEVICE)
    else:
        with pretended_device() as device:
            yield device


def _run(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Check the devices of an operation, compute it on the CPU, and label the result."""
    leaves = tree_leaves((args, kwargs))
    on_device = [one for one in leaves if isinstance(one, DeviceTensor)]
    lands_there = _lands_there(leaves, kwargs)
    if function not in COPIES:
        _check_tensors(function, args, leaves)
    if lands_there and torch.Tag.nondeterministic_seeded in function.tags:
        _check_draws(function)
    result = function(*tree_map(_held, args), **tree_map(_held, kwargs))
    if not lands_there or function is aten._local_scalar_dense.default:
        return result
    # What was changed in place stays the same object.
    known = {id(one.held): one for one in on_device}
    return tree_map(lambda one: known[id(one)] if id(one) in known else _labelled(one), result)


def _lands_there(leaves: list[Any], kwargs: dict[str, Any]) -> bool:
    """Return whether the result of an operation is on the device."""
    named = kwargs.get("device")
    if named is not None:
        return torch.device(named) == DEVICE
    return any(isinstance(one, DeviceTensor) for one in leaves)


def _check_tensors(function: Callable[..., Any], args: Any, leaves: list[Any]) -> None:
    """Refuse what a GPU refuses.

    Raises:
        MixedDevicesError: if tensors of the device and of the CPU are mixed.

    """
    if function in INDEXING:
        indices = [one for one in args[1] if one is not None]
        if not isinstance(args[0], DeviceTensor):
            leaves = [args[0], *indices]
        else:
            leaves = [one for one in leaves if not any(one is index for index in indices)]
    tensors = [one for one in leaves if isinstance(one, Tensor)]
    on_cpu = [
        one
        for one in tensors
        if not isinstance(one, DeviceTensor) and (one.dim() or function in JOINING)
    ]
    if on_cpu and any(isinstance(one, DeviceTensor) for one in tensors):
        raise MixedDevicesError(
            f"{function}: tensors of these shapes are on the CPU, and others are not: "
            f"{[tuple(one.shape) for one in on_cpu]}"
        )


def _check_draws(function: Callable[..., Any]) -> None:
    """Refuse random numbers of the device, as generators of GPUs give other numbers.

    Raises:
        MixedDevicesError: if the operation draws.

    """
    if function._schema.name.removeprefix("aten::") not in DRAW_ONLY_FOR_DROPOUT:
        raise MixedDevicesError(f"{function}: numbers are drawn on the device")


def _is_list(place: Any) -> bool:
    return isinstance(place, list)


def _index(place: Any) -> Any:
    return torch.tensor(place) if _is_list(place) else place


def _held(one: Any) -> Any:
    if isinstance(one, DeviceTensor):
        return one.held
    return torch.device("cpu") if isinstance(one, torch.device) and one == DEVICE else one


def _labelled(one: Any) -> Any:
    return DeviceTensor(one) if isinstance(one, Tensor) else one
