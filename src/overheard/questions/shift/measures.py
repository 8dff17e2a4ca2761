"""How the figures of merit of this question are told to a reader."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.figures import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "auc": Measure("Shifts told from controls", f"{SPACE}of{SPACE}100", 100.0),
        "auc_told": Measure("The same, told when", f"{SPACE}of{SPACE}100", 100.0),
        "power_at_5": Measure(f"Found at 5{SPACE}% false alarms", f"{SPACE}%", 100.0),
        "power_at_1": Measure(f"Found at 1{SPACE}% false alarms", f"{SPACE}%", 100.0),
        "detected": Measure("Shifts that raised the alarm", f"{SPACE}%", 100.0),
        "detection_rate": Measure("Shifts that raised the alarm", f"{SPACE}%", 100.0),
        "false_alarm": Measure("Alarms where nothing shifted", f"{SPACE}%", 100.0),
        "false_alarm_before": Measure("Alarms before the shift", f"{SPACE}%", 100.0),
        "false_alarm_rate": Measure("Controls that raised the alarm", f"{SPACE}%", 100.0),
        "rounds_between_false_alarms": Measure("Between false alarms", f"{SPACE}rounds", 1.0),
        "delay": Measure("From shift to alarm, mean", f"{SPACE}rounds", 1.0),
        "median_delay": Measure("From shift to alarm, median", f"{SPACE}rounds", 1.0),
        "round_error": Measure("Round off by", f"{SPACE}rounds", 1.0),
        "direction": Measure("Direction right", f"{SPACE}%", 100.0),
        "direction_detected": Measure("Direction right, if detected", f"{SPACE}%", 100.0),
        "signs_right": Measure("Signs right", f"{SPACE}%", 100.0),
        "risen_error": Measure("Share of risen classes off by", f"{SPACE}points", 100.0),
        "risen_coverage": Measure("That share inside its interval", f"{SPACE}%", 100.0),
        "coverage": Measure("True changes inside their intervals", f"{SPACE}%", 100.0),
        "width": Measure("Mean width of the stated intervals", f"{SPACE}points", 100.0),
    }
)
