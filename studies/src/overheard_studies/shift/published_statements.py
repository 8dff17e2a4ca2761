"""The paper's statements about its figures, whose values it does not print."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

Document = Mapping[str, Mapping[str, str]]


def read_statements(value: str) -> Mapping[str, str]:
    """Return the paper's statements about one of its figures, by key."""
    return _document()[value]


@cache
def _document() -> Document:
    file = files("overheard_studies").joinpath("published/shift.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
