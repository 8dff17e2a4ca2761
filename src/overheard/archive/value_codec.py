"""Conversion of values to JSON and tensors, and back, by their types.

Values are numbers, texts, tensors, tuples, mappings and frozen dataclasses of these, such as
claims and what attackers know. Tensors become places in a table of tensors. Equal tensors, and
equal long tuples of texts, are stored once: all claims of an attack may list the same thousand
candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from hashlib import blake2b
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NewType,
    TypeVar,
    Union,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

import torch
from jaxtyping import AbstractArray
from torch import Tensor

from overheard.core.errors import ClaimError

LONG = 8
"""Texts of a tuple from which on it is stored once, and referred to by a number."""

T = TypeVar("T")

_Form = Literal["union", "tuple", "mapping", "tensor", "dataclass", "plain"]

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


@final
class ValueEncoder:
    """Encodes values, and collects their tensors and long tuples of texts.

    A value refers to one of these by its place, such as `{"tensor": 3}`.

    Attributes:
        tensors: the tensors so far, in the memory of the CPU; a value refers to one by place.
        texts: the long tuples of texts so far.

    """

    def __init__(self) -> None:
        self.tensors = list[Tensor]()
        self.texts = list[Sequence[str]]()
        self._places = dict[object, int]()

    def encode(self, value: object) -> Json:
        """Return a value as JSON.

        Raises:
            ClaimError: if it is of a type that cannot be stored.

        """
        if value is None or isinstance(value, bool | int | float | str):
            # NumPy's float64 is a float of another type.
            return float(value) if isinstance(value, float) else value
        if isinstance(value, Tensor):
            return {"tensor": self._place_of_tensor(value)}
        if isinstance(value, tuple):
            if len(value) >= LONG and all(type(one) is str for one in value):
                return {"texts": self._place(value, self.texts, value)}
            return [self.encode(one) for one in value]
        if isinstance(value, Mapping):
            return [[self.encode(key), self.encode(one)] for key, one in value.items()]
        if is_dataclass(value):
            stored = [one.name for one in fields(value) if one.init]
            return {name: self.encode(getattr(value, name)) for name in stored}
        raise ClaimError(
            f"a {type(value).__name__} cannot be stored: use numbers, texts, tensors, tuples, "
            "mappings and frozen dataclasses of these"
        )

    def _place_of_tensor(self, value: Tensor) -> int:
        try:
            tensor = value.detach().cpu().contiguous()
            content = tensor.view(-1).view(torch.uint8).numpy()
        except RuntimeError as error:
            raise ClaimError(
                f"a tensor without plain numbers cannot be stored: {error}"
            ) from error
        digest = blake2b(content.data, digest_size=32).digest()
        return self._place((tensor.dtype, tensor.shape, digest), self.tensors, tensor)

    # Any: a list of tensors or of tuples of texts.
    def _place(self, content: object, stored: list[Any], value: object) -> int:
        place = self._places.setdefault(content, len(stored))
        if place == len(stored):
            stored.append(value)
        return place


@final
class ValueDecoder:
    """Decodes what `ValueEncoder` made of values whose types are known.

    Args:
        tensors: the tensors, by place.
        texts: the long tuples of texts, by place.

    """

    def __init__(self, tensors: Sequence[Tensor], texts: Sequence[Sequence[str]]) -> None:
        self._tensors = tensors
        self._texts = [tuple([_decode_plain(text, str) for text in one]) for one in texts]

    # Any: the type is known at run time only.
    def decode(self, value: Json, kind: Any) -> Any:
        """Return the value of this type.

        Raises:
            ValueError: if it is none of this type.

        """
        form, arguments = _form(kind)
        match form:
            case "union":
                return self._decode_union(value, arguments)
            case "tuple":
                return self._decode_tuple(value, arguments)
            case "mapping":
                return self._decode_mapping(value, arguments)
            case "tensor":
                return _at_place(self._tensors, "tensor", value)
            case "dataclass":
                return self._decode_dataclass(value, kind)
            case "plain":
                return _decode_plain(value, arguments[0])

    def _decode_union(self, value: Json, kinds: Sequence[Any]) -> Any:
        for kind in kinds:
            try:
                return self.decode(value, kind)
            except (ValueError, IndexError):
                continue
        return _require(False, value, kinds)

    def _decode_tuple(self, value: Json, kinds: Sequence[Any]) -> tuple[Any, ...]:
        given: Sequence[Json]
        if isinstance(value, dict):
            given = _at_place(self._texts, "texts", value)
        else:
            given = cast(list[Json], _require(isinstance(value, list), value, tuple))
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            form, arguments = _form(kinds[0])
            if form == "plain" and all(type(one) is arguments[0] for one in given):
                return tuple(given)  # most numbers are decoded here, as it is quick
            return tuple([self.decode(one, kinds[0]) for one in given])
        return tuple([self.decode(one, kind) for one, kind in zip(given, kinds, strict=True)])

    def _decode_mapping(self, value: Json, kinds: Sequence[Any]) -> dict[Any, Any]:
        _require(isinstance(value, list), value, Mapping)
        pairs = cast(list[list[Json]], value)
        return {self.decode(key, kinds[0]): self.decode(one, kinds[1]) for key, one in pairs}

    # Any: any dataclass.
    def _decode_dataclass(self, value: Json, kind: Any) -> Any:
        _require(isinstance(value, dict), value, kind)
        given, hints = cast(dict[str, Json], value), _hints(kind)
        # An older version did not know the fields that were added since, with defaults.
        added = hints.keys() - given.keys()
        _require(given.keys() <= hints.keys() and added <= _defaulted(kind), value, kind)
        return kind(**{name: self.decode(one, hints[name]) for name, one in given.items()})


def _at_place(stored: Sequence[T], key: str, value: Json) -> T:
    """Return what a value such as `{"tensor": 3}` refers to."""
    place = value.get(key) if isinstance(value, dict) and len(value) == 1 else None
    is_there = type(place) is int and 0 <= place < len(stored)
    _require(is_there, value, f"place of a stored {key}")
    return stored[cast(int, place)]


# Any: the type is known at run time only.
@cache
def _form(kind: Any) -> tuple[_Form, tuple[Any, ...]]:
    """Return how values of a type are decoded, and the types that it is made of."""
    kind = kind.__supertype__ if isinstance(kind, NewType) else kind
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return "union", arguments
    if origin is tuple:
        return "tuple", arguments
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mapping", arguments
    if isinstance(kind, type) and issubclass(kind, Tensor | AbstractArray):
        return "tensor", ()
    if isinstance(kind, type) and is_dataclass(kind):
        return "dataclass", ()
    return "plain", (kind,)


# Any: the type is known at run time only.
def _decode_plain(value: Json, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return _require(value in get_args(kind), value, kind)
    if kind in (NoneType, None):
        return _require(value is None, value, kind)
    if kind is float:
        return float(cast(float, _require(type(value) in (int, float), value, kind)))
    return _require(kind in (int, str, bool) and type(value) is kind, value, kind)


# Any: any dataclass.
@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


# Any: any dataclass.
@cache
def _defaulted(kind: Any) -> frozenset[str]:
    """Return the names of the fields of a dataclass that have a default."""
    return frozenset(
        field.name
        for field in fields(kind)
        if field.default is not MISSING or field.default_factory is not MISSING
    )


def _require(holds: bool, value: Json, kind: object) -> Json:
    if not holds:
        raise ValueError(f"expected a {kind}, got {str(value)[:80]}")
    return value
