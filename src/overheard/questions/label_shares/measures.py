"""Titles and units of this question's scores in reports."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "l1": Measure("Data assigned to the wrong class", f"{SPACE}%", 50.0),
        "linf": Measure("Largest error of a label share", f"{SPACE}points", 100.0, 0.0),
        "coverage": Measure("True shares inside the stated intervals", f"{SPACE}%", 100.0),
        "width": Measure("Mean width of the stated intervals", f"{SPACE}points", 100.0, 0.0),
        "doubted": Measure("Claims whose intervals the attack doubts", f"{SPACE}%", 100.0),
        "null_brier": Measure("Brier score of the absence probabilities", "", 1.0, 0.0),
        "size_factor": Measure(
            "Error of the number of examples", f"{SPACE}doublings", 1.0, 0.0
        ),
        "size_coverage": Measure(
            "True numbers of examples inside the stated intervals", f"{SPACE}%", 100.0
        ),
    }
)
