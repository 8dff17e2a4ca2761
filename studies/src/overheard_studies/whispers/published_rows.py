"""The published rows, and which of them are impossible."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import final

from overheard_studies.whispers.methods import DISTANCES

ROUNDING = 1e-4
"""Tolerance for two published distances that are both rounded to four digits."""

IMPOSSIBLE_NOTE = "impossible as published: its Wasserstein distance is below half of its L1"
"""The note on a row with a cell that cannot be right."""


@final
@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One method's distances in one setting, in the order of `DISTANCES`."""

    distances: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse a row with missing distances."""
        if len(self.distances) != len(DISTANCES):
            raise ValueError(f"a row has {len(DISTANCES)} distances, got {self.distances}")

    def distance(self, score: str) -> float:
        """Return one of the distances."""
        return self.distances[DISTANCES.index(score)]

    @property
    def is_impossible(self) -> bool:
        """Return whether no label shares on positions 0 .. C - 1 have these distances.

        Half of the L1 distance is the share that must be moved, each part by at least one
        position. The bound holds for each client, hence for the published means.
        """
        return self.distance("wasserstein") < self.distance("l1") / 2 - ROUNDING


@cache
def read_published_rows(table: str, scenario: str) -> Mapping[str, PublishedRow]:
    """Return the rows of a table for one scenario, by the attack's name; empty if none."""
    published = _document().get(table, {}).get(scenario, {})
    return {
        method: PublishedRow(tuple(float(word) for word in cells.split()))
        for method, cells in published.items()
        if method != "accuracy"
    }


def published_accuracy(scenario: str) -> float | None:
    """Return the accuracy of the global model (0..1) in a column of Table 4."""
    published = _document()["table4"].get(scenario)
    return None if published is None else float(published["accuracy"]) / 100


Document = Mapping[str, Mapping[str, Mapping[str, str]]]


@cache
def _document() -> Document:
    file = files("overheard_studies").joinpath("published/whispers.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
