"""How the figures of merit of this question are told to a reader."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.figures import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "accuracy": Measure("Values told right", f"{SPACE}%", 100.0),
        "balanced_accuracy": Measure("The same, mean over values", f"{SPACE}%", 100.0),
    }
)
