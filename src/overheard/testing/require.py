"""Fails a contract test with a message that stands without a test runner."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor


def require(holds: object, failure: str) -> None:
    """Raise an AssertionError with these words unless something holds."""
    # Not `assert`: it would vanish under `python -O`.
    if not holds:
        raise AssertionError(failure)


# Any: a part of any kind.
def require_part(part: Any) -> None:
    """See that a part is a final frozen dataclass that says what it is and where from."""
    kind = type(part)
    require(is_dataclass(part), f"{kind.__name__} is no dataclass: its fields are its settings")
    require(getattr(kind, "__final__", False), f"{kind.__name__} lacks the mark @final")
    require(
        kind.__dataclass_params__.frozen,
        f"{kind.__name__} can be changed: write @dataclass(frozen=True)",
    )
    require(
        isinstance(getattr(part, "name", None), str) and part.name.isidentifier(),
        f"{kind.__name__}.name is {getattr(part, 'name', None)!r}: choose one like 'my_part'",
    )
    require(
        len(str(getattr(part, "source", "")).strip()) > 3,
        f"{part.name}: `source` must say where the idea comes from",
    )
    # The parent's text says nothing about the part.
    require((kind.__doc__ or "").strip(), f"{part.name} has no docstring")
    twin = replace(part)
    require(twin == part, f"{part.name}: a copy with the same settings is not equal to it")
    require(hash(twin) == hash(part), f"{part.name}: a copy has another hash")
    settings = ", ".join(f"{one.name}={getattr(part, one.name)!r}" for one in fields(part))
    require(
        repr(part) == f"{kind.__name__}({settings})",
        f"{part.name}: its repr must name all its settings: leave it to the dataclass",
    )


def is_same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether two sets of weights are the same bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)
