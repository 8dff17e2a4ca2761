"""Titles and units of this question's scores in reports."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.controlled_findings import PAIR_MEASURES
from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "average_precision": Measure("Average precision per target", f"{SPACE}%", 100.0),
        **PAIR_MEASURES,
    }
)
