"""The numbers that the paper prints."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, final

from overheard.papers.flip.quadruple import BinaryTask, Quadruple


@final
@dataclass(frozen=True, slots=True)
class AttributeRow:
    """One attack of Table II.

    Args:
        number: of the row, from 1.
        data: "cifar10" or "cifar100".
        quadruple: its classes.
        accuracies: of the models, by task, 0..1.
        attack: how often the attack was right, 0..1; the blind guess is in half of the cases.

    """

    number: int
    data: str
    quadruple: Quadruple
    accuracies: Mapping[BinaryTask, float]
    attack: float


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


def attribute_rows() -> tuple[AttributeRow, ...]:
    """Table II, row by row."""
    rows = []
    for one in _document()["attributes"]:
        quadruple = Quadruple(tuple(one["primary"]), tuple(one["other"]))
        told = zip(quadruple.tasks, one["tasks"], strict=True)
        rows.append(
            AttributeRow(
                one["row"],
                one["data"],
                quadruple,
                {task: value / 100 for task, value in told},
                one["attack"] / 100,
            )
        )
    return tuple(rows)


@cache
# Any: tables within tables, numbers at their ends.
def _document() -> dict[str, Any]:
    place = files("overheard.papers").joinpath("published/flip.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))
