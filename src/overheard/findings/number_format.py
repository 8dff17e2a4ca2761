"""Formatting of numbers, intervals and units for readers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from overheard.core.scorer import Better
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.statistics.estimate import Estimate

NO_NUMBER = "–"

MINUS = "−"

SPACE = "\u00a0"
"""No-break space between a number and its unit."""

BYTE_UNITS = (
    ("B", 1.0),
    ("KiB", 2.0**10),
    ("MiB", 2.0**20),
    ("GiB", 2.0**30),
    ("TiB", 2.0**40),
)
"""Units of data, each with its size in bytes."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How a score is displayed.

    Args:
        title: name of the score in column heads and axis titles.
        unit: unit after the number, with its leading space; "" = no unit.
        factor: factor from the score's scale to the unit.
        least: the smallest value that the score can have, on its own scale; None = any. A
            score in percent, or of 100, has values from 0 to 100 without that.

    """

    title: str
    unit: str
    factor: float
    least: float | None = None

    def format(self, value: float | None) -> str:
        """Format the value in the unit."""
        number = format_number(None if value is None else value * self.factor)
        return number if number == NO_NUMBER else number + self.unit

    def cut(self, estimate: Estimate) -> Estimate:
        """Return the estimate of a score; its interval ends where the score's range does.

        Student's interval of few values may exceed them. Not for gains, which may be below 0.
        """
        least, most = -inf if self.least is None else self.least, inf
        if self.unit.endswith(("%", "100")):
            least, most = 0.0, 100.0 / self.factor
        return replace(
            estimate,
            low=None if estimate.low is None else max(estimate.low, least),
            high=None if estimate.high is None else min(estimate.high, most),
        )

    def format_interval(self, estimate: Estimate | None) -> str:
        """Format the 95 % interval of a score in the unit, such as "3.1 to 5.2", cut."""
        return self.format_gain_interval(None if estimate is None else self.cut(estimate))

    def format_gain_interval(self, gain: Estimate | None) -> str:
        """Format the 95 % interval of a gain in the unit; a gain may be below 0."""
        if gain is None or gain.low is None or gain.high is None:
            return NO_NUMBER
        low, high = gain.low * self.factor, gain.high * self.factor
        return f"{format_number(low)} to {format_number(high)}{self.unit}"


BARE_NUMBER = Measure("", "", 1.0)
"""Displays numbers without a unit."""


def format_number(value: float | None) -> str:
    """Format a number with few significant digits.

    >>> [format_number(value) for value in (21.34, 4.06, 0.0812, -3.0, float("nan"))]
    ['21', '4.1', '0.081', '−3.0', '–']
    """
    if value is None or not isfinite(value):
        return NO_NUMBER
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


def format_percent(share: float | None) -> str:
    r"""Format a share of 1 in percent, with one decimal.

    >>> format_percent(0.9134)
    '91.3\xa0%'
    """
    if share is None or not isfinite(share):
        return NO_NUMBER
    return f"{100 * share:.1f}{SPACE}%".replace("-", MINUS)


def format_bytes(count: float | None) -> str:
    r"""Format a number of bytes in a suitable unit.

    >>> [format_bytes(size) for size in (640.0, 54_321.0, 3.0 * 2**30, None)]
    ['640\xa0B', '53\xa0KiB', '3.0\xa0GiB', '–']
    """
    return _format_in_unit(count, BYTE_UNITS)


def format_duration(seconds: float | None) -> str:
    r"""Format a time in a suitable unit.

    >>> format_duration(0.25), format_duration(90.0), format_duration(5400.0)
    ('0.25\xa0s', '1.5\xa0min', '1.5\xa0h')
    """
    return _format_in_unit(seconds, (("s", 1.0), ("min", 60.0), ("h", 3600.0)))


def largest_unit(value: float, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """Return the largest unit that does not exceed the value, else the first."""
    candidates = [unit for unit in units if value >= unit[1]]
    return candidates[-1] if candidates else units[0]


def _format_in_unit(value: float | None, units: Sequence[tuple[str, float]]) -> str:
    if value is None:
        return NO_NUMBER
    name, size = largest_unit(value, units)
    return f"{format_number(value / size)}{SPACE}{name}"


def format_rounds(rounds: Sequence[int]) -> str:
    """Format round numbers; three or more consecutive numbers become a range.

    >>> format_rounds((0, 1, 2)), format_rounds((4,)), format_rounds((0, 5))
    ('0 to 2', '4', '0, 5')
    """
    if len(rounds) > 2 and list(rounds) == list(range(rounds[0], rounds[-1] + 1)):
        return f"{rounds[0]} to {rounds[-1]}"
    return ", ".join(map(str, rounds))


def reference_label(rows: Iterable[ScoreRow]) -> str:
    """Return the common name of the references of these rows."""
    names = {name for row in rows for name in row.references}
    if CONTROL_NAME not in names:
        return "informed guess"
    return "control" if names == {CONTROL_NAME} else "informed guess or control"


def direction_label(better: Better) -> str:
    """Return the direction of a better claim, in words."""
    return "lower = more leakage" if better == "lower" else "higher = more leakage"
