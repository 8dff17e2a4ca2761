"""How the figures of merit of this question are told to a reader."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.figures import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "membership_auc": Measure("Records told apart", f"{SPACE}of{SPACE}100", 100.0),
        "membership_accuracy": Measure("Records told right", f"{SPACE}%", 100.0),
        "tpr_at_1_percent": Measure(f"Found at 1{SPACE}% false positives", f"{SPACE}%", 100.0),
        "tpr_at_0.1_percent": Measure(
            f"Found at 0.1{SPACE}% false positives", f"{SPACE}%", 100.0
        ),
    }
)
