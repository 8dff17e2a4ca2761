"""Comparison of two scores by their intervals."""

from typing import Literal

from overheard.findings.score_row import ScoreRow

Comparison = Literal["too few", "no clear difference", "reads more", "reads less"]
"""too few: an interval is missing; no clear difference: the intervals overlap; reads more, or
reads less: they do not overlap, and the second score leaks more, or less."""


def compare_rows(before: ScoreRow, after: ScoreRow) -> Comparison:
    """Compare two rows of one score; only intervals that do not overlap count as different."""
    old, new = before.value, after.value
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return "too few"
    rose, fell = new.low > old.high, new.high < old.low
    if not rose and not fell:
        return "no clear difference"
    return "reads more" if rose == (after.better == "higher") else "reads less"
