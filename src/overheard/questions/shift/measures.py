"""Titles and units of this question's scores in a report."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "auc": Measure("Shifts ranked above controls", f"{SPACE}of{SPACE}100", 100.0),
        "auc_told": Measure("The same, at the true round", f"{SPACE}of{SPACE}100", 100.0),
        "auc_exact": Measure(
            "Shifts ranked above exact controls", f"{SPACE}of{SPACE}100", 100.0
        ),
        "power_at_5": Measure(f"Detected at 5{SPACE}% false alarms", f"{SPACE}%", 100.0),
        "power_at_1": Measure(f"Detected at 1{SPACE}% false alarms", f"{SPACE}%", 100.0),
        "power_at_5_exact": Measure(
            f"Detected at 5{SPACE}% false alarms in exact controls", f"{SPACE}%", 100.0
        ),
        "detected": Measure("Shifts that raised an alarm", f"{SPACE}%", 100.0),
        "detection_rate": Measure("Shifts that raised an alarm", f"{SPACE}%", 100.0),
        "false_alarm": Measure("Alarms without a shift", f"{SPACE}%", 100.0),
        "false_alarm_before": Measure("Alarms before the shift", f"{SPACE}%", 100.0),
        "false_alarm_rate": Measure("Controls that raised an alarm", f"{SPACE}%", 100.0),
        "false_alarm_rate_exact": Measure(
            "Exact controls that raised an alarm", f"{SPACE}%", 100.0
        ),
        "not_calibrated": Measure("Runs without a calibrated alarm", f"{SPACE}%", 100.0),
        "rounds_between_false_alarms": Measure(
            "Mean time between false alarms", f"{SPACE}rounds", 1.0
        ),
        "delay": Measure("Delay of the alarm, mean", f"{SPACE}rounds", 1.0),
        "median_delay": Measure("Delay of the alarm, median", f"{SPACE}rounds", 1.0),
        "round_error": Measure(
            "Error of the claimed round, looking back", f"{SPACE}rounds", 1.0
        ),
        "direction": Measure("Direction correct", f"{SPACE}%", 100.0),
        "direction_detected": Measure("Direction correct, if detected", f"{SPACE}%", 100.0),
        "signs_right": Measure("Signs correct", f"{SPACE}%", 100.0),
        "risen_error": Measure("Error of the share of risen classes", f"{SPACE}points", 100.0),
        "risen_coverage": Measure("True share inside its interval", f"{SPACE}%", 100.0),
        "coverage": Measure("True changes inside their intervals", f"{SPACE}%", 100.0),
        "width": Measure("Mean width of the stated intervals", f"{SPACE}points", 100.0),
    }
)
