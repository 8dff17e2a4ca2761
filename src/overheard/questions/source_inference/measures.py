"""Titles and units of this question's scores in a report."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "source_accuracy": Measure("Records with the right client", f"{SPACE}%", 100.0),
        "source_top3": Measure("Records with the right client among three", f"{SPACE}%", 100.0),
        "source_log_loss": Measure("Log loss of the client", "", 1.0, 0.0),
        "source_calibration_error": Measure("Calibration error", f"{SPACE}%", 100.0),
        "nobody_error": Measure(
            "Squared error of the probability that no client holds it", "", 1.0, 0.0
        ),
    }
)
