"""Noise that a client draws with NumPy."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, final
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from overheard.doctor.replay.trace import TorchRecorder

# Any: functions of NumPy take and return anything.
_RECORDERS: list[TorchRecorder] = []


@final
class NoiseArray(np.ndarray):
    """An array of normal noise; its sum with another array is an event of the recorder."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(one) if isinstance(one, NoiseArray) else one for one in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(np.asarray(one) for one in kwargs["out"])
        out = getattr(ufunc, method)(*plain, **kwargs)
        arrays = [one for one in inputs if isinstance(one, np.ndarray) and one.ndim]
        others = [one for one in arrays if not isinstance(one, NoiseArray)]
        if method != "__call__" or not isinstance(out, np.ndarray):
            return out
        if not others:
            return out.view(NoiseArray)
        is_sum = ufunc in (np.add, np.subtract) and out.shape == others[0].shape
        if not is_sum or not _RECORDERS or out.size not in _RECORDERS[-1].sizes:
            return out.view(NoiseArray) if ufunc in (np.multiply, np.divide) else out
        sign = -1.0 if ufunc is np.subtract else 1.0
        signs = (1.0, sign)
        at = next(k for k, one in enumerate(inputs) if isinstance(one, NoiseArray))
        released = _RECORDERS[-1].add_arrays(
            torch.from_numpy(np.asarray(plain[1 - at] * signs[1 - at], dtype=out.dtype)),
            torch.from_numpy(np.asarray(plain[at] * signs[at])),
            torch.from_numpy(out),
        )
        out[...] = released.numpy()
        return out


def _as_noise(array: Any) -> Any:
    return array.view(NoiseArray) if isinstance(array, np.ndarray) else array


class _Generator(np.random.Generator):
    """A generator of NumPy whose normal numbers are known as noise."""

    def normal(self, *args: Any, **kwargs: Any) -> Any:
        return _as_noise(super().normal(*args, **kwargs))

    def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
        return _as_noise(super().standard_normal(*args, **kwargs))

    def random(self, *args: Any, **kwargs: Any) -> Any:
        return _put_record_out(super().random(*args, **kwargs))


def _put_record_out(drawn: Any) -> Any:
    """Let a uniform number of the record be so large that it is in no batch, if it has to."""
    absent = _RECORDERS[-1].absent if _RECORDERS else None
    if absent is not None and isinstance(drawn, np.ndarray) and drawn.size == absent[1]:
        drawn.flat[absent[0]] = 1.0
    return drawn


@contextmanager
def watch_numpy(recorder: TorchRecorder) -> Iterator[None]:
    """Let the recorder know the noise that is drawn with NumPy in the block."""
    random, original = np.random, np.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        return _Generator(original(seed).bit_generator)

    def noisy(draw: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _as_noise(draw(*args, **kwargs))

    def uniform(draw: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _put_record_out(draw(*args, **kwargs))

    def tensor(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def made(data: Any, *args: Any, **kwargs: Any) -> Tensor:
            is_noise = isinstance(data, NoiseArray)
            out = make(np.asarray(data) if is_noise else data, *args, **kwargs)
            if is_noise:
                recorder.mark_noise(out, None)
            return out

        return made

    changed: list[tuple[Any, str, Any]] = [(random, "default_rng", default_rng)]
    for name in ("normal", "randn", "standard_normal"):
        changed.append((random, name, noisy(getattr(random, name))))
    for name in ("rand", "random", "uniform", "random_sample"):
        changed.append((random, name, uniform(getattr(random, name))))
    for name in ("from_numpy", "tensor", "as_tensor"):
        changed.append((torch, name, tensor(getattr(torch, name))))
    with ExitStack() as stack:
        for owner, name, value in changed:
            stack.enter_context(mock.patch.object(owner, name, value))
        _RECORDERS.append(recorder)
        stack.callback(_RECORDERS.pop)
        yield
