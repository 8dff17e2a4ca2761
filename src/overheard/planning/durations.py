"""Durations as people write them: 90s, 10m, 2h."""

import re

UNITS = {"s": 1, "m": 60, "h": 3600}
"""Seconds of each unit."""

LONGEST = 10_000 * 3600.0
"""The longest duration, in seconds: a limit against mistakes."""


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as 90s, 10m or 2h.

    Raises:
        ValueError: if the text is no such duration, is zero, or is above `LONGEST`.

    """
    match = re.fullmatch(r"([0-9]{1,8})([smh])", text.strip(), re.ASCII)
    seconds = float(int(match[1]) * UNITS[match[2]]) if match else 0.0
    if not 0 < seconds <= LONGEST:
        raise ValueError(
            f"{text!r} is not a duration: give a whole number with a unit, such as 90s, 10m "
            "or 2h"
        )
    return seconds


def describe_duration(seconds: float) -> str:
    """Return a duration in words, with about two digits."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
