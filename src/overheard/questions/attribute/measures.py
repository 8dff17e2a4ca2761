"""Titles and units of this question's scores in reports."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "accuracy": Measure("Correct attribute values", f"{SPACE}%", 100.0),
        "balanced_accuracy": Measure("Balanced accuracy over values", f"{SPACE}%", 100.0),
    }
)
