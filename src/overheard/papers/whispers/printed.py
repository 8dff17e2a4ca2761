"""What the paper printed, and which of it cannot be."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import final

from overheard.papers.whispers.methods import SCORES

ROUNDING = 1e-4
"""How far two printed distances may miss a law because both were rounded to four digits."""

IMPOSSIBLE = "impossible as printed, as its Wasserstein distance lies below half its L1"
"""The mark of a row of which some cell cannot be right."""


@final
@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One method's distances in one setting, in the order of `SCORES`."""

    distances: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse a row with a hole."""
        if len(self.distances) != len(SCORES):
            raise ValueError(f"a row has {len(SCORES)} distances, got {self.distances}")

    def of(self, score: str) -> float:
        """One of the distances."""
        return self.distances[SCORES.index(score)]

    @property
    def is_impossible(self) -> bool:
        """Whether no shares on positions 0 .. C - 1 are so far apart.

        Half the L1 distance is the share that must be moved, each part by one position at the
        least. What holds for each client holds for the means that are printed.
        """
        return self.of("wasserstein") < self.of("l1") / 2 - ROUNDING


@cache
def rows(table: str, scenario: str) -> Mapping[str, PrintedRow]:
    """The rows of a table for one scenario, by the attack's name; empty where it has none."""
    printed = _document().get(table, {}).get(scenario, {})
    return {
        method: PrintedRow(tuple(float(word) for word in told.split()))
        for method, told in printed.items()
        if method != "accuracy"
    }


def accuracy(scenario: str) -> float | None:
    """The accuracy of the global model (0..1) in a column of Table 4."""
    printed = _document()["table4"].get(scenario)
    return None if printed is None else float(printed["accuracy"]) / 100


Document = Mapping[str, Mapping[str, Mapping[str, str]]]


@cache
def _document() -> Document:
    place = files("overheard.papers").joinpath("published/whispers.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))
