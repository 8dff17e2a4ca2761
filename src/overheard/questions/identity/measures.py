"""Titles and units of this question's scores in a report."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.controlled_findings import PAIR_MEASURES
from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "top1": Measure("Correct on the first guess", f"{SPACE}%", 100.0),
        "top5": Measure("Correct within five guesses", f"{SPACE}%", 100.0),
        "unseen": Measure("Squared error of the probability of an unknown user", "", 1.0, 0.0),
        "mean_average_precision": Measure("Mean average precision", f"{SPACE}%", 100.0),
        "times_chance": Measure("Times chance", "", 1.0, 0.0),
        **PAIR_MEASURES,
        "dir_at_1_percent": Measure(
            f"Identified at 1{SPACE}% false positives", f"{SPACE}%", 100.0
        ),
        "control_excess": Measure("Mean average precision of the control", f"{SPACE}%", 100.0),
        "gain_over_published": Measure(
            "Gain over the published attack", f"{SPACE}points", 100.0
        ),
    }
)
