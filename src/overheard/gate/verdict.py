"""Verdicts on values under a rule, by the whole interval and never by the mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, final

from overheard.findings.document_rows import IntervalEstimate

MAX_PLAIN_NUMBER = 1e15
"""Numbers from 1000 up to this one are written with all their digits before the point."""

Status = Literal["pass", "fail", "inconclusive", "excused", "excepted"]
"""pass: the whole interval keeps the limit; fail: the whole interval breaks it; inconclusive:
neither, or nothing was measured; excused: not measured, which the policy allows.

excepted: it does not pass, which an exception of the policy accepts until a date."""

Side = Literal["at most", "at least"]

OverlapStatus = Literal["inconclusive", "pass", "fail"]
"""The status of an interval that contains the limit."""


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a value; a value equal to the limit keeps it.

    Args:
        side: whether the limit is an upper or a lower bound.
        value: the figure of the limit.
        quantity: the limited quantity, with a trailing space; "" = the score itself.

    """

    side: Side
    value: float
    quantity: str = ""

    @property
    def text(self) -> str:
        """The limit in words, such as "gain at most 0.1"."""
        return f"{self.quantity}{self.side} {format_number(self.value)}"


@final
@dataclass(frozen=True, slots=True)
class Acceptance:
    """Why a verdict that does not pass is accepted.

    Args:
        status: the status without the exception.
        reason: the reason that the policy states.
        expires: the last day of the exception.

    """

    status: Status
    reason: str
    expires: date


@final
@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The verdict of a rule on one subject.

    Args:
        rule: name of the rule.
        score: name of the limited score.
        subject: the judged arm, observers or attack; names in it may come from anybody.
        status: see `Status`.
        limit: the limit of the rule, in words.
        figure: the judged value; None = there is none.
        why: the reason; "" if value and limit suffice.
        arm: the judged arm; "" = the verdict is on no single arm.
        observers: the judged observers; None = the verdict is on no single group.
        attack: the judged attack; "" = the verdict is on no single attack.
        acceptance: the exception that the verdict falls under; None = none.

    """

    rule: str
    score: str
    subject: str
    status: Status
    limit: str
    figure: IntervalEstimate | None = None
    why: str = ""
    arm: str = ""
    observers: tuple[str, ...] | None = None
    attack: str = ""
    acceptance: Acceptance | None = None

    @property
    def figure_text(self) -> str:
        """The value with its interval, such as "0.593 (0.568 to 0.609)"; "" for none."""
        return format_estimate(self.figure)


def judge_interval(
    bounds: IntervalEstimate, limit: Limit, on_overlap: OverlapStatus, rows: int = 1
) -> tuple[Status, str]:
    """Return the status of an interval under a limit, and the reason.

    It passes if its end of 97.5 % keeps the limit. It fails if the other end breaks it, with
    97.5 % divided among the rows (Bonferroni): of many rows that keep the limit, the luckiest
    one must not seem to break it.

    Without both ends of the interval the status is inconclusive, whatever `on_overlap` says.

    Args:
        bounds: the interval.
        limit: the limit.
        on_overlap: the status of an interval that contains the limit.
        rows: number of rows that the rule judges.

    """
    low, high = bounds.low, bounds.high
    if low is None or high is None:
        return "inconclusive", "no interval: audit more targets or seeds"
    at_most = limit.side == "at most"
    if (high <= limit.value) if at_most else (low >= limit.value):
        return "pass", ""
    if _breaks(bounds.low_among(rows) if at_most else bounds.high_among(rows), limit):
        return "fail", "the whole interval lies beyond the limit"
    counted = (
        "" if on_overlap == "inconclusive" else f"; the policy counts this as {on_overlap}"
    )
    if _breaks(low if at_most else high, limit):
        return on_overlap, f"beyond the limit, but not clearly among {rows} rows{counted}"
    return on_overlap, f"the interval contains the limit{counted}"


def _breaks(end: float | None, limit: Limit) -> bool:
    """Return whether the end that is nearest to the limit breaks it."""
    if end is None:
        return False
    return end > limit.value if limit.side == "at most" else end < limit.value


def overall_status(verdicts: Sequence[RuleVerdict]) -> Status:
    """Return fail if any verdict fails, inconclusive if any is or none passes, else pass.

    A verdict that an exception accepts counts as one that passes.
    """
    found = {verdict.status for verdict in verdicts}
    if "fail" in found:
        return "fail"
    is_decided = "inconclusive" not in found and found & {"pass", "excepted"}
    return "pass" if is_decided else "inconclusive"


def format_estimate(figure: IntervalEstimate | None) -> str:
    """Write a value with its interval, such as "0.593 (0.568 to 0.609)"; "" for none."""
    if figure is None or figure.mean is None:
        return ""
    mean, low, high = figure.mean, figure.low, figure.high
    if low is None or high is None:
        return format_number(mean)
    return f"{format_number(mean)} ({format_number(low)} to {format_number(high)})"


def format_number(value: float) -> str:
    """Write a number with four digits, or with all digits before the point.

    >>> format_number(0.60049), format_number(1371200.0)
    ('0.6005', '1,371,200')
    """
    is_plain = 1000 <= abs(value) < MAX_PLAIN_NUMBER
    return f"{value:,.0f}" if is_plain else f"{value:.4g}"
