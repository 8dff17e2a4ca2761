"""The values that the Gradient-Leaks paper published, by table and data set."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

PaperDataset = Literal["pipa", "openimages", "blog", "yelp"]
"""The paper's data sets; scenarios are compared with one of them but use other data."""


def published_user_count(data: PaperDataset) -> int:
    """Return the number of users of one of the paper's data sets."""
    return int(_document()["users"][data])


def published_utility(data: PaperDataset | None, prior: str, model: str) -> float | None:
    """Return the utility of a model in Table 2; None if the table has no such entry.

    Args:
        data: data set of the paper.
        prior: "random" or "chronological".
        model: "federated", "centralised" or "chance".

    """
    return _number("table2", data, prior, model)


def published_reidentification(
    data: PaperDataset | None, prior: str, attack: str, score: str
) -> float | None:
    """Return an attack's score in Table 3; None if the table has no such entry."""
    return _number("table3", data, prior, attack, score)


def published_attribute_accuracy(attribute: str, column: str) -> float | None:
    """Return a top-1 accuracy of Table 4; None if the table has no such entry.

    Args:
        attribute: an attribute, or "identity" for re-identification alone.
        column: what is inferred and how, such as "attribute_joint": jointly with the user.

    """
    return _number("table4", attribute, column)


def published_depth_precision(data: PaperDataset | None, layer: str) -> float | None:
    """Return the average precision of a layer in Table 5."""
    return _number("table5", data, layer)


def published_in_text(name: str) -> float:
    """Return a value that the text gives for a figure whose plot could not be read."""
    return float(_document()["text"][name])


def _number(*path: str | None) -> float | None:
    # Any: nested tables with numbers as leaves.
    node: Any = _document()
    for step in path:
        if step not in node:
            return None
        node = node[step]
    return float(node)


@cache
def _document() -> dict[str, Any]:  # Any: as above.
    file = files("overheard_studies").joinpath("published/deanonymization.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
