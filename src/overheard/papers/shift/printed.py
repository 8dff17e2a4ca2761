"""What the paper says of its figures, whose numbers it does not print."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

Document = Mapping[str, Mapping[str, str]]


def sentences(figure: str) -> Mapping[str, str]:
    """The paper's sentences about one of its figures, by the key of the reading."""
    return _document()[figure]


@cache
def _document() -> Document:
    place = files("overheard.papers").joinpath("published/shift.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))
