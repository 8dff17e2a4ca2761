"""The numbers that the paper prints, by its tables and its data sets."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

PaperData = Literal["pipa", "openimages", "blog", "yelp"]
"""The paper's data sets; ours stand beside one of them, and are none of them."""


def users_of(data: PaperData) -> int:
    """How many users the paper has there."""
    return int(_document()["users"][data])


def utility(data: PaperData | None, prior: str, model: str) -> float | None:
    """What the model is worth in Table 2; None where it has no such cell.

    Args:
        data: of the paper.
        prior: "random" or "chronological".
        model: "federated", "centralised" or "chance".

    """
    return _number("table2", data, prior, model)


def reidentified(data: PaperData | None, prior: str, attack: str, score: str) -> float | None:
    """What an attack scores in Table 3; None where it has no such cell."""
    return _number("table3", data, prior, attack, score)


def told_attribute(attribute: str, cell: str) -> float | None:
    """Top-1 accuracies of Table 4: of an attribute, or of `identity`, by cell."""
    return _number("table4", attribute, cell)


def at_depth(data: PaperData | None, layer: str) -> float | None:
    """Average precision by layer in Table 5."""
    return _number("table5", data, layer)


def said(number: str) -> float:
    """A number that the text says of a figure whose plot is lost."""
    return float(_document()["text"][number])


def _number(*path: str | None) -> float | None:
    # Any: tables within tables, numbers at their ends.
    found: Any = _document()
    for step in path:
        if step not in found:
            return None
        found = found[step]
    return float(found)


@cache
def _document() -> dict[str, Any]:  # Any: as above.
    place = files("overheard.papers").joinpath("published/deanonymization.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))
