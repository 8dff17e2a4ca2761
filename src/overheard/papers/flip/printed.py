"""The numbers that the paper prints."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


def accuracy(data: str, model: str, arm: str) -> float | None:
    """Table I, 0..1; None where it has no such cell.

    Args:
        data: "mnist" or "cifar10".
        model: as the plan names it.
        arm: "fedavg", or the number of synthetic examples a class.

    """
    value = _document().get(data, {}).get(model, {}).get(arm)
    return None if value is None else value / 100


def membership(arm: str) -> float:
    """How often its membership attack is right, 0..1, of "fedavg" and "flip"."""
    return float(_document()["membership"][arm]) / 100


@cache
# Any: tables within tables, numbers at their ends.
def _document() -> dict[str, Any]:
    place = files("overheard.papers").joinpath("published/flip.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))
