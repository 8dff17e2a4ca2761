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


OWN_SCALE = Measure("", "", 1.0)
"""Tells bare numbers, as they are."""


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
