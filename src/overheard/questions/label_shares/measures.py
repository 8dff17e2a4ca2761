"""How the figures of merit of this question are told to a reader."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.figures import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "l1": Measure("Data put in the wrong class", f"{SPACE}%", 50.0),
        "linf": Measure("Error on the worst class", f"{SPACE}points", 100.0),
        "coverage": Measure("True shares inside the stated intervals", f"{SPACE}%", 100.0),
        "width": Measure("Mean width of the stated intervals", f"{SPACE}points", 100.0),
        "null_brier": Measure("Squared error of the stated chances of absence", "", 1.0),
        "size_factor": Measure("Number of examples off by", f"{SPACE}doublings", 1.0),
        "size_coverage": Measure("True sizes inside the stated intervals", f"{SPACE}%", 100.0),
    }
)
