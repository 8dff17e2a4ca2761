"""How figures are written for a reader: few digits, the interval beside the mean."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from overheard.core.scorer import Better
from overheard.findings.row import CONTROL, Row
from overheard.statistics.estimate import Estimate

NO_FIGURE = "–"

MINUS = "−"

SPACE = "\u00a0"
"""Between a figure and its unit, so that a line never breaks there."""

BYTES = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
"""Units of what is sent, each with its bytes."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How a figure of merit is told to a reader.

    Args:
        title: what it is, as the head of a column or the title of an axis.
        unit: written after a figure, with its leading space; "" for a bare number.
        factor: from the score's own scale to the unit's.

    """

    title: str
    unit: str
    factor: float

    def tell(self, value: float | None) -> str:
        """The value in the unit."""
        number = digits(None if value is None else value * self.factor)
        return number if number == NO_FIGURE else number + self.unit

    def span(self, estimate: Estimate | None) -> str:
        """The 95 % interval in the unit, such as "3.1 to 5.2"."""
        if estimate is None or estimate.low is None or estimate.high is None:
            return NO_FIGURE
        low, high = estimate.low * self.factor, estimate.high * self.factor
        return f"{digits(low)} to {digits(high)}{self.unit}"


_MEASURES = {
    "l1": Measure("Data put in the wrong class", f"{SPACE}%", 50.0),
    "tv": Measure("Data put in the wrong class", f"{SPACE}%", 100.0),
    "linf": Measure("Error on the worst class", f"{SPACE}points", 100.0),
    "coverage": Measure("True shares inside the stated intervals", f"{SPACE}%", 100.0),
    "width": Measure("Mean width of the stated intervals", f"{SPACE}points", 100.0),
    "null_brier": Measure("Squared error of the stated chances of absence", "", 1.0),
    "size_factor": Measure("Number of examples off by", f"{SPACE}doublings", 1.0),
    "size_coverage": Measure("True sizes inside the stated intervals", f"{SPACE}%", 100.0),
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
    "top1": Measure("Named right at the first try", f"{SPACE}%", 100.0),
    "top5": Measure("Among the first five named", f"{SPACE}%", 100.0),
    "unseen": Measure("Squared error of the stated chances of a stranger", "", 1.0),
    "mean_average_precision": Measure("Average precision a user", f"{SPACE}%", 100.0),
    "times_chance": Measure("Times chance", "", 1.0),
    "matching_auc": Measure("Pairs told apart", f"{SPACE}of{SPACE}100", 100.0),
    "equal_error_rate": Measure("Equal error rate", f"{SPACE}%", 100.0),
    "dir_at_1_percent": Measure(f"Named right at 1{SPACE}% false alarms", f"{SPACE}%", 100.0),
    "control_excess": Measure("The control's average precision", f"{SPACE}%", 100.0),
    "gain_over_published": Measure("Gain over the published", f"{SPACE}points", 100.0),
    "membership_auc": Measure("Records told apart", f"{SPACE}of{SPACE}100", 100.0),
    "membership_accuracy": Measure("Records told right", f"{SPACE}%", 100.0),
    "tpr_at_1_percent": Measure(f"Found at 1{SPACE}% false positives", f"{SPACE}%", 100.0),
    "tpr_at_0.1_percent": Measure(f"Found at 0.1{SPACE}% false positives", f"{SPACE}%", 100.0),
    "average_precision": Measure("Average precision a target", f"{SPACE}%", 100.0),
    "accuracy": Measure("Values told right", f"{SPACE}%", 100.0),
    "balanced_accuracy": Measure("The same, mean over values", f"{SPACE}%", 100.0),
}


def measure(score: str) -> Measure:
    """How to tell the score with this name; an unknown one is told on its own scale."""
    return _MEASURES.get(score, Measure(score, "", 1.0))


def digits(value: float | None) -> str:
    """The number with as many digits as a reader can use: three, and two places at most.

    >>> digits(21.34), digits(4.06), digits(0.0812), digits(-3.0), digits(float("nan"))
    ('21', '4.1', '0.081', '−3.0', '–')
    """
    if value is None or not isfinite(value):
        return NO_FIGURE
    size = abs(value)
    if size >= 9.95:
        text = f"{size:.0f}"
    elif size >= 0.995:
        text = f"{size:.1f}"
    elif size >= 0.0995:
        text = f"{size:.2f}"
    else:
        text = "0" if size < 5e-7 else f"{size:.2g}"
    return MINUS + text if value < 0 and text != "0" else text


def percent(share: float | None) -> str:
    r"""A share of 1 in percent, to a tenth.

    >>> percent(0.9134)
    '91.3\xa0%'
    """
    if share is None or not isfinite(share):
        return NO_FIGURE
    return f"{100 * share:.1f}{SPACE}%".replace("-", MINUS)


def data_size(count: float | None) -> str:
    r"""So many bytes, in a unit that leaves few digits.

    >>> data_size(640.0), data_size(54_321.0), data_size(3.0 * 2**30), data_size(None)
    ('640\xa0B', '53\xa0KiB', '3.0\xa0GiB', '–')
    """
    return _in_unit(count, BYTES)


def duration(seconds: float | None) -> str:
    r"""A time, in a unit that leaves few digits.

    >>> duration(0.25), duration(90.0), duration(5400.0)
    ('0.25\xa0s', '1.5\xa0min', '1.5\xa0h')
    """
    return _in_unit(seconds, (("s", 1.0), ("min", 60.0), ("h", 3600.0)))


def largest_unit(value: float, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The last of these units, from small to large, that the value fills; else the first."""
    filled = [unit for unit in units if value >= unit[1]]
    return filled[-1] if filled else units[0]


def _in_unit(value: float | None, units: Sequence[tuple[str, float]]) -> str:
    if value is None:
        return NO_FIGURE
    name, size = largest_unit(value, units)
    return f"{digits(value / size)}{SPACE}{name}"


def rounds_heard(rounds: Sequence[int]) -> str:
    """Round numbers, in a row written as a span.

    >>> rounds_heard((0, 1, 2)), rounds_heard((4,)), rounds_heard((0, 5))
    ('0 to 2', '4', '0, 5')
    """
    if len(rounds) > 2 and list(rounds) == list(range(rounds[0], rounds[-1] + 1)):
        return f"{rounds[0]} to {rounds[-1]}"
    return ", ".join(map(str, rounds))


def beside(rows: Iterable[Row]) -> str:
    """What the references of these rows are called together."""
    names = {name for row in rows for name in row.references}
    if CONTROL not in names:
        return "told guess"
    return "control" if names == {CONTROL} else "told guess or control"


def direction(better: Better) -> str:
    """Which way a better claim lies, in words."""
    return "lower reads more" if better == "lower" else "higher reads more"
