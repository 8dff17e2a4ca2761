"""The values of Tables I and II and of the text that the FLiP paper published."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, final

from overheard_studies.flip.quadruple import BinaryTask, Quadruple


@final
@dataclass(frozen=True, slots=True)
class AttributeRow:
    """One row of Table II.

    Args:
        number: number of the row, from 1.
        data: "cifar10" or "cifar100".
        quadruple: classes of the attack.
        accuracies: accuracies of the models by task, 0..1.
        attack_accuracy: accuracy of the attack, 0..1; an uninformed guess has 0.5.

    """

    number: int
    data: str
    quadruple: Quadruple
    accuracies: Mapping[BinaryTask, float]
    attack_accuracy: float


def published_accuracy(data: str, model: str, arm: str) -> float | None:
    """Return a test accuracy of Table I, 0..1; None if the table has no such entry.

    Args:
        data: "mnist" or "cifar10".
        model: name of the model in the plan.
        arm: "fedavg", or the number of synthetic examples per class.

    """
    value = _document().get(data, {}).get(model, {}).get(arm)
    return None if value is None else value / 100


def published_membership_accuracy(arm: str) -> float:
    """Return the accuracy of the membership attack, 0..1, for "fedavg" or "flip"."""
    return float(_document()["membership"][arm]) / 100


def read_attribute_rows() -> tuple[AttributeRow, ...]:
    """Return the rows of Table II."""
    rows = []
    for one in _document()["attributes"]:
        quadruple = Quadruple(tuple(one["primary"]), tuple(one["other"]))
        accuracies = zip(quadruple.tasks, one["tasks"], strict=True)
        rows.append(
            AttributeRow(
                one["row"],
                one["data"],
                quadruple,
                {task: value / 100 for task, value in accuracies},
                one["attack"] / 100,
            )
        )
    return tuple(rows)


@cache
# Any: nested tables with numbers as leaves.
def _document() -> dict[str, Any]:
    file = files("overheard_studies").joinpath("published/flip.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
