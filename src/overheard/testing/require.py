"""Requirements that fail with a readable message, with or without a test runner."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor


def require(holds: object, failure: str) -> None:
    """Raise an AssertionError with this message unless the condition holds."""
    # Not `assert`, which `python -O` removes.
    if not holds:
        raise AssertionError(failure)


# Any: a part of any kind.
def require_part(part: Any) -> None:
    """Check that a plugin is a final frozen dataclass with a name, a source and a docstring."""
    kind = type(part)
    require(
        is_dataclass(part),
        f"{kind.__name__} is no dataclass: declare its settings as dataclass fields",
    )
    require(getattr(kind, "__final__", False), f"{kind.__name__} needs the decorator @final")
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
        f"{part.name}: `source` must name the origin of the method",
    )
    # Not an inherited docstring.
    require((kind.__doc__ or "").strip(), f"{part.name} has no docstring")
    copy = replace(part)
    require(copy == part, f"{part.name}: a copy with the same settings is not equal to it")
    require(hash(copy) == hash(part), f"{part.name}: a copy has another hash")
    settings = ", ".join(f"{one.name}={getattr(part, one.name)!r}" for one in fields(part))
    require(
        repr(part) == f"{kind.__name__}({settings})",
        f"{part.name}: its repr must list all its settings: do not override it",
    )


def are_weights_equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Return whether two sets of weights are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)
