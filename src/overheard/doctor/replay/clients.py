"""The clients that a proof can run: a plain function that trains, and a Flower app."""

import inspect
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from overheard.core.custom_code.reference import import_reference
from overheard.core.errors import PlanError
from overheard.doctor.replay.records import RecordReplacer
from overheard.doctor.replay.stated_claim import NOTHING_STATED, StatedClaim, read_settings

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Value = Array | float | str
"""A value of a reply."""

NO_CONFIG: Mapping[str, object] = MappingProxyType({})

_DATA_WORDS = ("data", "load", "partition", "records", "examples", "corpus")
_OTHER_WORDS = (
    "model",
    "weight",
    "param",
    "state",
    "net",
    "config",
    "train_on",
    "batch",
    "fit",
)


@final
@dataclass(frozen=True, slots=True)
class Code:
    """The code of a client.

    Args:
        client: "package.module:name" of a `ClientApp` of Flower, or of a function
            `train(model, data, config)` that returns its reply.
        folder: the folder of the code; its modules are imported anew for each run.
        model: "package.module:name" of a class or function that makes the model; "" = a class
            of the client's modules is taken.
        data: "package.module:name" of the function that loads a client's data; "" = functions
            of the client's modules whose name says so.
        config: settings that each message carries, and the run's configuration.

    """

    client: str
    folder: Path
    model: str = ""
    data: str = ""
    config: Mapping[str, object] = field(default_factory=lambda: NO_CONFIG)


class TestedClient(ABC):
    """A client that can be started anew and asked to train."""

    @abstractmethod
    def start(self, number: int, records: RecordReplacer) -> None:
        """Import its code, and prepare the client with this number."""

    @abstractmethod
    def start_weights(self) -> Sequence[Tensor]:
        """Return the weights that it is sent."""

    @abstractmethod
    # Any: a reply of the user's code.
    def train(self, round: int) -> Any:
        """Return its reply to a message to train."""


@final
class PlainClient(TestedClient):
    """A function `train(model, data, config)`, whose data a function of its module loads."""

    def __init__(self, code: Code) -> None:
        self._code = code

    def start(self, number: int, records: RecordReplacer) -> None:
        """Import its code, and prepare the client with this number."""
        # Any: functions of the user's code.
        self._train: Any = import_reference(self._code.client, "the client", PlanError)
        # Data that a module loads when it is imported are replaced too.
        watch_data(self._code, records)
        module = sys.modules[self._code.client.partition(":")[0]]
        load: Any = find_data_function(self._code, module)
        self._model = make_model(self._code)
        self._data = call_with(load, [number, 2])
        self._number = number

    def start_weights(self) -> Sequence[Tensor]:
        """Return the weights that it is sent."""
        return weights_of(self._model)

    def train(self, round: int) -> Any:
        """Return its reply to a message to train."""
        config = {**self._code.config, "server-round": round, "client": self._number}
        return call_with(self._train, [deepcopy(self._model), self._data, config])


def find_data_function(code: Code, module: ModuleType) -> Callable[..., Any]:
    """Return the function that loads data.

    Raises:
        PlanError: if there is none.

    """
    if code.data:
        found = import_reference(code.data, "the data", PlanError)
    else:
        names = [one for one, value in vars(module).items() if _loads_data(one, value)]
        name = "load_data" if "load_data" in names else next(iter(names), "")
        found = vars(module).get(name)
    if not callable(found):
        raise PlanError(
            f"{module.__name__} has no function load_data: name the function that loads a "
            "client's data"
        )
    return found


# Any: functions of the user's code.
def call_with(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a function with as many of the arguments as it requires."""
    kinds = inspect.signature(function).parameters.values()
    positional = [
        one for one in kinds if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    required = sum(one.default is one.empty for one in positional)
    return function(*arguments[: max(required, min(len(positional), len(arguments)))])


def make_model(code: Code) -> Any:
    """Return a new model of the client.

    Raises:
        PlanError: if none is named and the code has none that can be made without arguments.

    """
    if code.model:
        made: Any = import_reference(code.model, "the model", PlanError)
        return made()
    modules = sorted(_modules_in(code.folder))
    for name in modules:
        for function in ("build_model", "make_model", "get_model"):
            if function in vars(sys.modules[name]):
                return vars(sys.modules[name])[function]()
    for name in modules:
        for found in vars(sys.modules[name]).values():
            is_network = isinstance(found, type) and issubclass(found, nn.Module)
            if is_network and found.__module__ == name:
                try:
                    return found()
                except TypeError:
                    continue
    raise PlanError(
        f"{code.folder}: no class of a network that can be made without arguments: name the "
        "class or function that makes the model"
    )


def weights_of(model: Any) -> list[Tensor]:
    """Return the arrays of a model, of a state, or of a list of arrays."""
    if isinstance(model, nn.Module):
        return list(model.parameters())
    values = model.values() if isinstance(model, Mapping) else model
    arrays = values if isinstance(values, tuple | list) else list(values or ())
    return [torch.as_tensor(one) for one in arrays]


def watch_data(code: Code, records: RecordReplacer) -> None:
    """Let the record be replaced in what functions of the client's code load.

    These are the named function, or all whose name says that they load data. Names for data in
    the modules themselves are replaced too.
    """
    named = import_reference(code.data, "the data", PlanError) if code.data else None
    watched = dict[int, Callable[..., Any]]()
    for name in _modules_in(code.folder):
        module = sys.modules[name]
        for key, value in list(vars(module).items()):
            if isinstance(value, torch.utils.data.DataLoader | torch.utils.data.Dataset):
                setattr(module, key, records.replaced(value))
            is_own = isinstance(value, FunctionType) and _is_inside(value, code.folder)
            is_chosen = _loads_data(key, value) if named is None else value is named
            if is_own and is_chosen:
                watched.setdefault(id(value), records.watch(value))
                setattr(module, key, watched[id(value)])


# Any: a value of a module of the user's code.
def _loads_data(name: str, value: Any) -> bool:
    """Return whether the name of a function says that it loads data."""
    lower = name.lower()
    says_other = any(one in lower for one in _OTHER_WORDS)
    says_data = any(one in lower for one in _DATA_WORDS)
    return isinstance(value, FunctionType) and says_data and not says_other


def _is_inside(function: FunctionType, folder: Path) -> bool:
    return Path(function.__code__.co_filename).resolve().is_relative_to(folder.resolve())


def _modules_in(folder: Path) -> list[str]:
    """Return the names of imported modules whose file lies in a folder."""
    places = (f"{folder.absolute()}{os.sep}", f"{folder.resolve()}{os.sep}")
    elsewhere, found = _modules_elsewhere(places), list[str]()
    for name, module in list(sys.modules.items()):
        # Thousands of modules are loaded, and each run of a client asks some five times.
        if elsewhere.get(name) is module:
            continue
        is_module = isinstance(module, ModuleType)
        if is_module and str(vars(module).get("__file__") or "").startswith(places):
            found.append(name)
        else:
            elsewhere[name] = module
    return found


@cache
def _modules_elsewhere(places: tuple[str, ...]) -> dict[str, ModuleType]:
    """Return the modules that were found to lie outside of these folders, for `_modules_in`."""
    return {}


def claim_of_modules(folder: Path) -> StatedClaim:
    """Return the clip and the noise multiplier that constants of imported modules state."""
    claim = NOTHING_STATED
    for name in _modules_in(folder):
        claim = claim.filled(read_settings(vars(sys.modules[name]), f"constants of {name}"))
    return claim


@contextmanager
def new_modules(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported anew in the block; then the former ones return."""
    former = {name: sys.modules.pop(name) for name in _modules_in(folder)}
    try:
        yield
    finally:
        for name in _modules_in(folder):
            del sys.modules[name]
        sys.modules.update(former)


# Any: a reply of the user's code.
def flatten_reply(reply: Any, prefix: str = "") -> dict[str, Value]:
    """Return the values of a reply by their path, such as "arrays.conv1.weight"."""
    parts = _parts(reply)
    if parts is None:
        return {prefix or "reply": _value(reply)}
    dot = f"{prefix}." if prefix else ""
    return {k: v for name, one in parts for k, v in flatten_reply(one, f"{dot}{name}").items()}


def _parts(reply: Any) -> list[tuple[str, Any]] | None:
    """Return the parts of a reply, each with its name; None = it is one value."""
    if reply is None:
        return []
    if isinstance(reply, nn.Module):
        reply = reply.state_dict()
    if isinstance(reply, Mapping):
        return [(str(name), one) for name, one in reply.items()]
    if isinstance(reply, tuple | list):
        return [(str(at), one) for at, one in enumerate(reply)]
    values = Tensor | np.ndarray | np.generic | bool | int | float | str | bytes
    is_value = isinstance(reply, values) or callable(getattr(reply, "numpy", None))
    return None if is_value else list(getattr(reply, "__dict__", {"": str(reply)}).items())


def _value(reply: Any) -> Value:
    if isinstance(reply, str | bytes):
        return str(reply)
    if isinstance(reply, Tensor):
        return reply.detach().to_dense().cpu().double().numpy()
    array = np.asarray(reply.numpy() if hasattr(reply, "numpy") else reply)
    if array.dtype.kind not in "biuf":
        return str(array.tolist())
    return float(array) if np.isscalar(reply) else array.astype(np.float64)
