"""Reads what a file of PyTorch says of its tensors, without an unpickler.

Such a file has a small program of the pickle protocol, which an unpickler runs: it calls what
the program names. Here the program is only read, instruction by instruction. Names stay texts,
nothing is imported or called, and whatever is no tensor, dict, list or plain value is dropped.
"""

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

MOST_INSTRUCTIONS = 3_000_000
"""The most instructions that are read: a tensor takes about thirty. They take up to 600 MB."""

LARGEST = 2**60
"""The largest whole number that is a length, a key or a place in memory.

Larger ones may be made to have one hash, so that a dict takes hours to fill.
"""


@final
@dataclass(frozen=True, slots=True)
class Name:
    """A name of code, which is never resolved."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Storage:
    """Numbers in another part of the file: their type, as a name of code, and their key."""

    kind: str
    key: str


@final
@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A view of a storage: where it begins, its shape and steps, in numbers."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


@final
class Dropped:
    """An object that is no tensor and no plain value."""


Value = object
"""A plain value, dict, list, tuple, or one of the classes above."""

_MARK = object()

_PLAIN: Mapping[str, Value] = MappingProxyType(
    {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
)

_ARGUMENTS = frozenset(
    {
        "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT",
        "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "STRING", "BINSTRING",
        "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    }
)  # fmt: skip
"""Instructions whose argument is the value."""


def read_values(program: bytes) -> Value:
    """Return what a program describes, with tensors as `SavedTensor`.

    Raises:
        ValueError: if it is damaged, or has instructions that files of PyTorch do not have.

    """
    machine = _Machine()
    for number, (instruction, argument, _) in enumerate(pickletools.genops(program)):
        if number > MOST_INSTRUCTIONS:
            raise ValueError(f"it has more than {MOST_INSTRUCTIONS} instructions")
        if instruction.name == "STOP":
            return machine.pop()
        machine.step(instruction.name, argument)
    raise ValueError("it was cut short")


@final
class _Machine:
    """The stack of a program, and what it remembers."""

    def __init__(self) -> None:
        self._stack = list[Value]()
        self._memory = dict[int, Value]()
        self._steps = dict[str, Callable[[], None]](
            {
                "EMPTY_DICT": lambda: self._stack.append({}),
                "EMPTY_LIST": lambda: self._stack.append([]),
                "EMPTY_SET": lambda: self._stack.append(Dropped()),
                "EMPTY_TUPLE": lambda: self._stack.append(()),
                "MARK": lambda: self._stack.append(_MARK),
                "TUPLE": lambda: self._stack.append(tuple(self._since_mark())),
                "LIST": lambda: self._stack.append(self._since_mark()),
                "TUPLE1": lambda: self._stack.append((self.pop(),)),
                "TUPLE2": lambda: self._pop_tuple(2),
                "TUPLE3": lambda: self._pop_tuple(3),
                "SETITEM": lambda: self._set_items([self.pop(), self.pop()][::-1]),
                "SETITEMS": lambda: self._set_items(self._since_mark()),
                "APPEND": lambda: self._append([self.pop()]),
                "APPENDS": lambda: self._append(self._since_mark()),
                "ADDITEMS": lambda: self._since_mark().clear(),
                "NEWOBJ": lambda: self._replace(2),
                "REDUCE": self._reduce,
                # The state of an OrderedDict is only its `_metadata`.
                "BUILD": lambda: self._drop(1),
                "BINPERSID": self._refer,
                "MEMOIZE": lambda: self._remember(len(self._memory)),
                "STACK_GLOBAL": self._name,
            }
        )

    def pop(self) -> Value:
        """Remove and return the last value."""
        if not self._stack or self._stack[-1] is _MARK:
            raise ValueError("its instructions do not fit each other")
        return self._stack.pop()

    def step(self, name: str, argument: object) -> None:
        """Follow one instruction."""
        if name in {"PROTO", "FRAME"}:
            return
        if name in _PLAIN:
            self._stack.append(_PLAIN[name])
        elif name in _ARGUMENTS:
            self._stack.append(argument)
        elif name == "GLOBAL":
            self._stack.append(Name(str(argument).replace(" ", ".", 1)))
        elif name in {"BINPUT", "LONG_BINPUT", "PUT"} and isinstance(argument, int):
            self._remember(argument)
        elif name in {"BINGET", "LONG_BINGET", "GET"} and argument in self._memory:
            assert isinstance(argument, int)
            self._stack.append(self._memory[argument])
        elif name in self._steps:
            self._steps[name]()
        else:
            raise ValueError(f"it has the instruction {name}, which no state dict has")

    def _remember(self, place: int) -> None:
        if not 0 <= place <= LARGEST:
            raise ValueError("its instructions do not fit each other")
        value = self.pop()
        self._memory[place] = value
        self._stack.append(value)

    def _since_mark(self) -> list[Value]:
        found = list[Value]()
        while self._stack:
            value = self._stack.pop()
            if value is _MARK:
                return found[::-1]
            found.append(value)
        raise ValueError("its instructions do not fit each other")

    def _pop_tuple(self, count: int) -> None:
        self._stack.append(tuple([self.pop() for _ in range(count)][::-1]))

    def _set_items(self, items: list[Value]) -> None:
        held = self.pop()
        if isinstance(held, dict):
            for key, value in zip(items[::2], items[1::2], strict=True):
                if isinstance(key, str) or (isinstance(key, int) and abs(key) <= LARGEST):
                    held[key] = value
        self._stack.append(held)

    def _append(self, items: list[Value]) -> None:
        held = self.pop()
        if isinstance(held, list):
            held += items
        self._stack.append(held)

    def _name(self) -> None:
        name, module = self.pop(), self.pop()
        are_texts = isinstance(name, str) and isinstance(module, str)
        self._stack.append(Name(f"{module}.{name}") if are_texts else Dropped())

    def _reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        made: Value = Dropped()
        if isinstance(function, Name) and isinstance(arguments, tuple):
            match function.text.rpartition(".")[2]:
                case "OrderedDict":
                    made = {}
                case "_rebuild_tensor_v2" | "_rebuild_tensor_v3":
                    made = _tensor(arguments)
                case "_rebuild_parameter" | "_rebuild_parameter_with_state" if arguments:
                    made = arguments[0]
        self._stack.append(made)

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self.pop()

    def _replace(self, count: int) -> None:
        self._drop(count)
        self._stack.append(Dropped())

    def _refer(self) -> None:
        match self.pop():
            case ("storage", Name(kind), str(key), *_):
                self._stack.append(Storage(kind.rpartition(".")[2], key))
            case _:
                self._stack.append(Dropped())


def _tensor(arguments: tuple[Value, ...]) -> Value:
    match arguments:
        case (Storage() as storage, int(offset), tuple(shape), tuple(steps), *_):
            numbers = (offset, *shape, *steps)
            if len(shape) != len(steps) or not all(
                type(one) is int and 0 <= one <= LARGEST for one in numbers
            ):
                # They are not shown: as text, nested values may take all of the memory.
                raise ValueError("a tensor has a shape, steps or offset that no tensor has")
            return SavedTensor(storage, offset, shape, steps)
    return Dropped()


def find_state(value: Value) -> dict[str, SavedTensor]:
    """Return the tensors of the dict or list, at any depth, that has most of them.

    Tensors of a list are named by their position.
    """
    found, queue, seen = dict[str, SavedTensor](), [value], set[int]()
    for one in queue:
        if id(one) in seen or not isinstance(one, dict | list | tuple):
            continue
        seen.add(id(one))
        items = list(one.items() if isinstance(one, dict) else enumerate(one))
        tensors = {str(name): held for name, held in items if isinstance(held, SavedTensor)}
        if len(tensors) > len(found):
            found = tensors
        queue += [held for _, held in items]
    return found
