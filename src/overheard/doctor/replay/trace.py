"""What the code of a client does with torch: its random draws, its noise and its numbers."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from overheard.doctor.replay.stated_claim import NOTHING_STATED, StatedClaim, read_frame

_LIBRARIES = tuple(str(Path(one).parent) for one in (torch.__file__, __file__))

_ADDING = frozenset({"add", "add_", "sub", "sub_", "rsub", "_foreach_add", "_foreach_add_"})
_COMPARING = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf"})
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_OVERWRITING = frozenset({"copy_", "zero_", "fill_"})
_MIXING = frozenset({"mul", "mul_", "div", "div_", "where", "masked_fill", "masked_fill_"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoiseEvent:
    """Noise that was added to a tensor.

    Args:
        group: which step it belongs to: additions between two passes of a model are one step.
        place: the line of code, in words.
        inputs: the tensor before the noise.
        noise: the noise.
        std: standard deviation by the arguments of the draw; None = unknown.
        released: their sum.

    """

    group: int
    place: str
    inputs: Tensor
    noise: Tensor
    std: float | None
    released: Tensor


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A number that left torch.

    Args:
        value: the number.
        place: the line of code, in words.
        compared: of a truth value, the numbers whose comparison gave it.

    """

    value: float
    place: str
    compared: tuple[float, ...] = ()


@final
@dataclass(slots=True, eq=False)
class Trace:
    """What happened while a client answered one message.

    Args:
        draws: random draws in order, each with its name.
        events: additions of noise in order.
        inputs: what the model was given in each pass, one row a record.
        groups: the step after each pass of the model.
        is_training: whether gradients can be computed of each pass.
        updates: how often weights of the model had been changed before each pass.
        numbers: numbers that left torch in order.
        divergence: where a replay first did something else than the past; "" = nowhere.
        is_scaled: whether gradients of the record could be scaled in each pass.

    """

    draws: list[tuple[str, Tensor]] = field(default_factory=list)
    events: list[NoiseEvent] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    is_training: list[bool] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    divergence: str = ""
    is_scaled: bool = True


@final
@dataclass(frozen=True, slots=True)
class Intervention:
    """How a run is changed, beside its data.

    Args:
        rows: by the number of a pass, the rows of the record.
        factor: gradients of these rows are multiplied by it; 0 masks the record.
        numbers: by their place in the trace, numbers that leave torch as others.
        absent: position and number of records: the record is in no batch that is drawn by a
            uniform number for each record; None = it stays.
        replays_released: whether noised sums are those of the past, and not random draws only.

    """

    rows: Mapping[int, Sequence[int]] = field(default_factory=dict)
    factor: float = 1.0
    numbers: Mapping[int, float] = field(default_factory=dict)
    absent: tuple[int, int] | None = None
    replays_released: bool = True


@final
class TorchRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what code does with torch, and replays the noised sums of the past.

    Tensors whose storage came from a normal distribution are noise, and remain noise while they
    are combined with numbers and other noise. The sum of noise and of another tensor with as
    many values as a parameter, or as all of them, is an event. In a replay its released value
    is that of the past, so that whatever follows from released values alone stays the same.

    Args:
        sizes: numbers of values that a noised tensor may have.
        total: number of values of a whole step; a step without a pass of a model ends there.

    """

    def __init__(self, sizes: frozenset[int], total: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sizes, self.total = sizes, total
        self.claim: StatedClaim = NOTHING_STATED
        self._noise = dict[int, tuple[Tensor, float | None]]()
        self._zeros = dict[int, Tensor]()
        # The tensors are kept, so that no other ones get their addresses.
        self._compared = dict[int, tuple[Tensor, tuple[float, ...]]]()
        self._depth = 0
        self.begin(Trace(), None, Intervention())

    def begin(self, trace: Trace, past: Trace | None, change: Intervention) -> None:
        """Record the next message in a trace, as a replay of the past if there is one."""
        self.trace, self._past, self._change = trace, past, change
        self._group, self._in_group, self._passes = 0, 0, 0

    # Any: operators of torch take and return anything.
    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = str(func.overloadpacket.__name__)
        if torch.Tag.nondeterministic_seeded in func.tags:
            return self._draw(name, func, args, kwargs)
        if name == "_local_scalar_dense":
            return self._number(args[0], func(*args, **kwargs))
        if name in _ZEROS:
            out = func(*args, **kwargs)
            self._zeros[_address(out)] = out
            return out
        if self._noise and name in _ADDING:
            return self._add(name, func, args, kwargs)
        out = func(*args, **kwargs)
        if name in _COMPARING and out.numel() == 1:
            numbers = tuple(float(one) for one in _tensors((*args,)) if one.numel() == 1)
            self._compared[_address(out)] = (out, numbers)
        if name.endswith("_"):
            for one in _tensors(args[0]):
                self._zeros.pop(_address(one), None)
        if self._noise:
            self._follow(name, args, kwargs, out)
        return out

    # -- random draws ---------------------------------------------------------------------

    def _draw(
        self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        mean = args[0] if name == "normal" and args and isinstance(args[0], Tensor) else None
        out = func(*args, **kwargs)
        if mean is not None and mean.shape == out.shape and bool((mean != 0).any()):
            # The noise is repeated, and not its sum with a mean that may depend on the record.
            noise = out - mean
            self._replay_draw(name, noise)
            out.copy_(mean + noise)
            std = _stated_std(name, args, kwargs)
            is_sum = out.numel() in self.sizes
            return self._event(mean.clone(), noise, std, out) if is_sum else out
        for one in _tensors(out):
            self._replay_draw(name, one)
        if not (name.startswith(("normal", "randn")) and isinstance(out, Tensor)):
            return out
        std = _stated_std(name, args, kwargs)
        self._mark(out, std)
        return out

    def _replay_draw(self, name: str, out: Tensor) -> None:
        trace, past = self.trace, self._past
        at = len(trace.draws)
        is_other_batch = self._change.absent is not None
        if past is not None and not trace.divergence:
            if at < len(past.draws) and _same_kind(past.draws[at], name, out):
                out.copy_(past.draws[at][1])
            elif not is_other_batch:
                trace.divergence = f"random draw {at + 1} ({name}) at {_place()}"
        absent = self._change.absent
        is_uniform = (
            name.startswith(("rand", "uniform", "bernoulli")) and out.is_floating_point()
        )
        if absent is not None and is_uniform and out.numel() == absent[1]:
            out.view(-1)[absent[0]] = 0.0 if name.startswith("bernoulli") else 1.0
        trace.draws.append((name, out.clone()))

    # -- noise ----------------------------------------------------------------------------

    def mark_noise(self, tensor: Tensor, std: float | None) -> None:
        """Take a tensor as noise that was drawn elsewhere, such as by NumPy."""
        self._mark(tensor, std)

    def add_arrays(self, inputs: Tensor, noise: Tensor, released: Tensor) -> Tensor:
        """Note a sum with noise that was made by NumPy; returns what is released."""
        return self._event(inputs.clone(), noise.clone(), None, released)

    @property
    def absent(self) -> tuple[int, int] | None:
        """Position and number of records, if the record is to be in no batch."""
        return self._change.absent

    def _mark(self, tensor: Tensor, std: float | None) -> None:
        if not isinstance(tensor, nn.Parameter) and _address(tensor):
            # The tensor is kept, so that no other one gets its address.
            self._noise[_address(tensor)] = (tensor, std)

    def _unmark(self, tensor: Tensor) -> None:
        self._noise.pop(_address(tensor), None)

    def _is_noise(self, value: object) -> bool:
        if not isinstance(value, Tensor):
            return False
        if isinstance(value, nn.Parameter) or value.requires_grad:
            self._unmark(value)  # weights that were drawn
            return False
        return _address(value) in self._noise

    def _std(self, tensor: Tensor) -> float | None:
        return self._noise[_address(tensor)][1]

    def _add(self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # Any: tensors or numbers.
        first: Any = args[0]
        second: Any = args[1] if len(args) > 1 else kwargs.get("other")
        if name.startswith("_foreach"):
            return self._add_lists(func, args, kwargs)
        one, two = self._is_noise(first), self._is_noise(second)
        other = second if one else first
        was_zero = isinstance(other, Tensor) and _address(other) in self._zeros
        if isinstance(first, Tensor) and name.endswith("_"):
            self._zeros.pop(_address(first), None)
        alpha = float(kwargs.get("alpha", 1))
        if not one and not two:
            return func(*args, **kwargs)
        if (one and two) or was_zero or _is_number(other, second if two else first):
            stds = [self._std(x) for x, is_noise in ((first, one), (second, two)) if is_noise]
            out = func(*args, **kwargs)
            is_same = was_zero and alpha == 1
            std = _sum_std(stds, alpha) if one and two else stds[0] if is_same else None
            self._mark(out, std)
            return out
        signs = {"sub": (1.0, -alpha), "rsub": (-alpha, 1.0)}
        scales = signs.get(name.rstrip("_"), (1.0, alpha))
        noise, scale = (first, scales[0]) if one else (second, scales[1])
        inputs = other.detach() * (scales[1] if one else scales[0])
        std = self._std(noise)
        noise = noise.detach() * scale
        out = func(*args, **kwargs)
        self._unmark(out)
        if out.numel() not in self.sizes:
            return out
        return self._event(inputs, noise, None if std is None else std * abs(scale), out)

    def _add_lists(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Add lists of tensors, each pair as an addition of its own."""
        if not isinstance(args[1], list | tuple):
            return func(*args, **kwargs)
        is_in_place = str(func.overloadpacket.__name__).endswith("_")
        add = torch.ops.aten.add_.Tensor if is_in_place else torch.ops.aten.add.Tensor
        name = "add_" if is_in_place else "add"
        pairs = zip(args[0], args[1], strict=True)
        sums = [self._add(name, add, pair, kwargs) for pair in pairs]
        return None if is_in_place else sums

    def _event(self, inputs: Tensor, noise: Tensor, std: float | None, out: Tensor) -> Tensor:
        trace, at = self.trace, len(self.trace.events)
        if self._passes == 0 and self._in_group + out.numel() > self.total:
            self._group, self._in_group = self._group + 1, 0
        if not self.claim.is_whole:
            self.claim = self.claim.filled(_stated_in_frames())
        place = _place()
        if self._past is not None and self._change.replays_released:
            events = self._past.events
            if at < len(events) and events[at].released.shape == out.shape:
                with torch.no_grad():
                    out.copy_(events[at].released)
            elif not trace.divergence:
                trace.divergence = f"noise {at + 1} added at {place}"
        released = out.detach().clone()
        trace.events.append(NoiseEvent(self._group, place, inputs, noise, std, released))
        self._in_group += out.numel()
        return out

    def _follow(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any
    ) -> None:
        """Mark what is computed from noise and from numbers alone as noise."""
        given = _tensors((*args, *kwargs.values()))
        noise = [one for one in given if self._is_noise(one)]
        if name in _OVERWRITING:
            if name == "copy_" and self._is_noise(args[1]):
                self._mark(args[0], self._std(args[1]))
            elif noise and noise[0] is args[0]:
                self._unmark(args[0])
            return
        if not noise:
            return
        others = [one for one in given if one.numel() > 1 and not self._is_noise(one)]
        if others and name not in _MIXING:
            return
        std = self._std(noise[0]) if len(noise) == 1 or not others else None
        std = None if others else _scaled(std, name, args)
        for one in _tensors(out):
            self._mark(one, std)

    # -- numbers and passes ---------------------------------------------------------------

    def _number(self, tensor: Tensor, value: Any) -> Any:
        at = len(self.trace.numbers)
        changed = self._change.numbers.get(at)
        if changed is not None:
            value = type(value)(changed)
        _, compared = self._compared.get(_address(tensor), (tensor, ()))
        self.trace.numbers.append(Number(float(value), _place(), compared))
        return value

    def before_pass(self, module: nn.Module, args: Any) -> None:
        """Note that a module was called; a hook of torch."""
        if self._depth == 0 and self._noise:
            for one in module.parameters():
                self._is_noise(one)
        self._depth += 1

    def after_pass(self, module: nn.Module, args: Any, out: Any) -> Any:
        """Note a model's inputs, and scale the gradients of the record; a hook of torch."""
        self._depth -= 1
        if self._depth or out is None:
            return None
        given = next((one for one in tree_leaves(args) if isinstance(one, Tensor)), None)
        if given is None or given.dim() == 0:
            return None
        if self._in_group:
            self._group, self._in_group = self._group + 1, 0
        trace, at = self.trace, len(self.trace.inputs)
        self._passes += 1
        with _outside_of_vmap():
            physical = _unwrapped(given)
            trace.inputs.append(physical.detach().clone())
        trace.groups.append(self._group)
        outputs = [one for one in tree_leaves(out) if isinstance(one, Tensor)]
        in_vmap = physical is not given
        trace.updates.append(sum(one._version for one in module.parameters()))
        trace.is_training.append(in_vmap or any(one.requires_grad for one in outputs))
        rows = self._change.rows.get(at)
        if rows is None or self._change.factor == 1:
            return None
        scaled = _scale_gradients(
            out, self._factors(given, physical, rows), physical is not given
        )
        trace.is_scaled &= scaled is not None
        return scaled

    def _factors(self, given: Tensor, physical: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the factor of each record's gradient; inside of vmap, that of any record."""
        factor = self._change.factor
        if physical is given:
            factors = torch.ones(len(given))
            factors[list(rows)] = factor
            return factors
        is_record = torch.stack([(given.detach() == physical[row]).all() for row in rows]).any()
        return torch.where(is_record, factor, 1.0)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record all that runs in the block."""
        hooks = nn.modules.module
        before = hooks.register_module_forward_pre_hook(self.before_pass)
        after = hooks.register_module_forward_hook(self.after_pass, always_call=True)
        try:
            with self:
                yield
        finally:
            before.remove()
            after.remove()


def _address(tensor: Tensor) -> int:
    """Return the address of a tensor's values; 0 = it has none, as inside of vmap."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


# Any: arguments of an operator: tensors, lists of them, and others.
def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, tuple | list):
        return [tensor for one in values for tensor in _tensors(one)]
    return []


# Any: an argument of an operator.
def _is_number(value: Any, noise: Tensor) -> bool:
    if not isinstance(value, Tensor) or value.dim() == 0:
        return True
    return value.numel() == 1 and noise.numel() > 1


def _same_kind(past: tuple[str, Tensor], name: str, out: Tensor) -> bool:
    return past[0] == name and past[1].shape == out.shape and past[1].dtype == out.dtype


def _stated_std(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float | None:
    """Return the standard deviation that normal numbers are drawn with; None = several."""
    if name.startswith("randn"):
        return 1.0
    std = args[2] if name == "normal_" and len(args) > 2 else kwargs.get("std")
    if name == "normal" and std is None:
        std = args[1] if len(args) > 1 else 1.0
    std = 1.0 if std is None else std
    if isinstance(std, Tensor):
        return float(std.flatten()[0]) if bool((std == std.flatten()[0]).all()) else None
    return float(std)


def _sum_std(stds: Sequence[float | None], alpha: float) -> float | None:
    first, second = stds
    return None if first is None or second is None else math.hypot(first, alpha * second)


_SAME_STD = frozenset(
    {"view", "reshape", "_unsafe_view", "clone", "detach", "_to_copy", "t", "transpose", "neg"}
    | {"neg_", "expand", "slice", "select", "split", "split_with_sizes", "unsqueeze", "squeeze"}
    | {"cat", "stack", "permute", "alias", "as_strided", "contiguous", "unbind", "view_as"}
    | {"index_select", "index", "flatten", "lift_fresh", "narrow"}
    # These make noise smaller than its draw says, which is then measured.
    | {"clamp", "clamp_", "clamp_min", "clamp_max", "round", "trunc"}
)


def _scaled(std: float | None, name: str, args: Sequence[Any]) -> float | None:
    """Return the standard deviation of noise after an operator; None = unknown."""
    if std is None or name in _SAME_STD:
        return std
    if name.rstrip("_") in {"mul", "div"} and len(args) > 1:
        numbers = [one for one in args[:2] if not isinstance(one, Tensor) or one.numel() == 1]
        if len(numbers) == 1:
            number = abs(float(numbers[0]))
            return std * number if name.startswith("mul") else std / max(number, 1e-300)
    return None


def _place() -> str:
    """Return the line of code outside of torch and of this package that is running."""
    return next((f"{_short(one)}, line {one.f_lineno}" for one in _frames()), "unknown code")


def _short(frame: FrameType) -> str:
    return Path(frame.f_code.co_filename).name


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_LIBRARIES):
            yield frame
        frame = frame.f_back


def _stated_in_frames() -> StatedClaim:
    claim = NOTHING_STATED
    for frame in _frames():
        claim = claim.filled(read_frame(frame.f_locals))
    for frame in _frames():
        claim = claim.filled(read_frame(frame.f_globals))
    return claim


# Any: the functions of torch for tensors inside of vmap have no types.
def _outside_of_vmap() -> Any:
    return torch._C._DisableFuncTorch()


def _unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor inside of vmap and grad, with a row for each record."""
    functorch: Any = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        at = functorch.maybe_get_bdim(tensor) if functorch.is_batchedtensor(tensor) else 0
        tensor = functorch.get_unwrapped(tensor)
        tensor = tensor if at == 0 else tensor.movedim(at, 0)
    return tensor


def _scale_gradients(out: Any, factors: Tensor, is_in_vmap: bool) -> Any:
    """Return the same outputs, whose gradients are scaled by record; None = cannot be done."""
    if isinstance(out, tuple | list):
        parts = [_scale_gradients(one, factors, is_in_vmap) for one in out]
        return None if any(one is None for one in parts) else type(out)(parts)
    if type(out) is dict:
        by_name = {
            name: _scale_gradients(one, factors, is_in_vmap) for name, one in out.items()
        }
        return None if any(one is None for one in by_name.values()) else by_name
    if not isinstance(out, Tensor) or (not is_in_vmap and out.shape[:1] != factors.shape):
        return None
    factors = factors.to(out.dtype)
    if not is_in_vmap:
        factors = factors.view(-1, *[1] * (out.dim() - 1))
    # The value stays as it is, bit for bit: the difference in brackets is zero.
    return out + (factors - 1) * (out - out.detach())
