"""Titles and units of this question's scores in reports."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "target_mean_error": Measure(
            "Error of the mean number", f"{SPACE}standard deviations", 1.0, 0.0
        ),
        "pinball": Measure(
            "Pinball loss of the quantiles", f"{SPACE}standard deviations", 1.0, 0.0
        ),
        "target_coverage": Measure(
            "True numbers inside the stated intervals", f"{SPACE}%", 100.0
        ),
    }
)
