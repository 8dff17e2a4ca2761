"""How long a plan lets messages and results be stored."""

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, final

Unit = Literal["day", "week", "month", "year"]

RETENTION_FORM = (
    '"30 days" for all, or "messages 30 days, results 3 years", each in days, weeks, months or '
    "years"
)
"""How a retention is written, for errors."""

MAX_COUNT = 1000

_PERIOD = re.compile(r"([1-9][0-9]{0,3}) (day|week|month|year)s?")
_PART = re.compile(rf"(messages|results) ({_PERIOD.pattern})")


@final
@dataclass(frozen=True, slots=True)
class Period:
    """A number of days, weeks, months or years."""

    count: int
    unit: Unit

    def after(self, day: date) -> date:
        """Return the last day of the period that begins on a day.

        >>> Period(1, "month").after(date(2026, 1, 31))
        datetime.date(2026, 2, 28)
        """
        if self.unit in ("day", "week"):
            return day + timedelta(self.count * (7 if self.unit == "week" else 1))
        months = day.month - 1 + self.count * (12 if self.unit == "year" else 1)
        year, month = day.year + months // 12, months % 12 + 1
        return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


@final
@dataclass(frozen=True, slots=True)
class Retention:
    """How long messages and results are stored, from the day of the audit on.

    Args:
        messages: of messages, claims and caches; None = not stated.
        results: of the page, the findings and the evidence; None = not stated.

    """

    messages: Period | None
    results: Period | None


def parse_retention(text: str) -> Retention:
    """Parse how long messages and results are stored.

    >>> parse_retention("messages 30 days, results 3 years").results
    Period(count=3, unit='year')

    Raises:
        ValueError: if the text has another form.

    """
    plain = " ".join(text.split())
    if match := _PERIOD.fullmatch(plain):
        period = _period(match[1], match[2])
        return Retention(period, period)
    periods = dict[str, Period]()
    for part in plain.split(", "):
        found = _PART.fullmatch(part)
        if found is None or found[1] in periods:
            raise ValueError(f"expected {RETENTION_FORM}, got {text!r}")
        periods[found[1]] = _period(found[3], found[4])
    return Retention(periods.get("messages"), periods.get("results"))


def _period(count: str, unit: str) -> Period:
    if int(count) > MAX_COUNT:
        raise ValueError(f"a retention has at most {MAX_COUNT} of its unit, got {count}")
    units: dict[str, Unit] = {"day": "day", "week": "week", "month": "month", "year": "year"}
    return Period(int(count), units[unit])
