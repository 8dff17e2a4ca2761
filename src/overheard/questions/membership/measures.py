"""Titles and units of this question's scores in a report."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

WITHIN_LABELS = "_within_labels"
"""Ends the names of scores that compare records of one label alone. Claims have them where
members and non-members differ in their labels."""

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "membership_auc_within_labels": Measure(
            "Members ranked above non-members of their label", f"{SPACE}of{SPACE}100", 100.0
        ),
        "tpr_at_1_percent_within_labels": Measure(
            f"Members found at 1{SPACE}% false positives, by label", f"{SPACE}%", 100.0
        ),
        "membership_auc": Measure(
            "Members ranked above non-members", f"{SPACE}of{SPACE}100", 100.0
        ),
        "membership_accuracy": Measure("Records classified correctly", f"{SPACE}%", 100.0),
        "tpr_at_1_percent": Measure(
            f"Members found at 1{SPACE}% false positives", f"{SPACE}%", 100.0
        ),
        "tpr_at_0.1_percent": Measure(
            f"Members found at 0.1{SPACE}% false positives", f"{SPACE}%", 100.0
        ),
    }
)
