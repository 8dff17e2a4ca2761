"""What is said of one figure under one rule: by its whole interval, never by its mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from overheard.findings.document_rows import Bounds

LONGEST = 300
"""Characters of a name or a reason that are shown: names in findings may be anybody's."""

WRITTEN_OUT = 1e15
"""Numbers up to here are written with all their digits."""

Status = Literal["pass", "fail", "inconclusive", "excused"]
"""pass: what is asked is kept, of an interval by all of it; fail: it is broken, of an interval
by all of it; inconclusive: neither can be said, or nothing was measured; excused: not measured,
which the policy allows."""

Side = Literal["at most", "at least"]

Straddling = Literal["inconclusive", "pass", "fail"]
"""What an interval counts as that holds the limit inside."""


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that a figure must keep; a figure that is exactly as large keeps it.

    Args:
        side: on which the figure must stay.
        value: of the bound.
        of: what it is a bound of, with a space behind; "" = of the score itself.

    """

    side: Side
    value: float
    of: str = ""

    @property
    def told(self) -> str:
        """Such as "gain at most 0.1"."""
        return f"{self.of}{self.side} {number(self.value)}"


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says of one thing that it asks about.

    Args:
        rule: its name.
        score: the name of the figure that the rule asks about.
        what: of which it is a figure; names in it may be anybody's.
        status: see `Status`.
        limit: as told by the rule.
        figure: what was held against the limit; None = there was nothing to hold.
        why: the reason, "" where the figure and the limit say it all.

    """

    rule: str
    score: str
    what: str
    status: Status
    limit: str
    figure: Bounds | None = None
    why: str = ""

    @property
    def told_figure(self) -> str:
        """The figure with its interval, such as "0.593 (0.568 to 0.609)"; "" for none."""
        if self.figure is None or self.figure.mean is None:
            return ""
        mean, low, high = self.figure.mean, self.figure.low, self.figure.high
        if low is None or high is None:
            return number(mean)
        return f"{number(mean)} ({number(low)} to {number(high)})"


def judged(bounds: Bounds, limit: Limit, straddling: Straddling) -> tuple[Status, str]:
    """The status of a figure under a limit, and why.

    Without both ends of an interval nothing is said, whatever `straddling`.
    """
    low, high = bounds.low, bounds.high
    if low is None or high is None:
        return "inconclusive", "it has no interval: audit more targets or seeds"
    at_most = limit.side == "at most"
    if (high <= limit.value) if at_most else (low >= limit.value):
        return "pass", ""
    if (low > limit.value) if at_most else (high < limit.value):
        return "fail", "the whole interval lies beyond the limit"
    allowed = "" if straddling == "inconclusive" else f"; by the policy that is a {straddling}"
    return straddling, f"the limit lies inside the interval{allowed}"


def overall(verdicts: Sequence[Verdict]) -> Status:
    """Fail if anything fails, else inconclusive if anything is or nothing passes, else pass."""
    found = {verdict.status for verdict in verdicts}
    if "fail" in found:
        return "fail"
    return "pass" if found in ({"pass"}, {"pass", "excused"}) else "inconclusive"


def number(value: float) -> str:
    """Four digits, or all of them before the point.

    >>> number(0.60049), number(1371200.0)
    ('0.6005', '1,371,200')
    """
    is_plain = 1000 <= abs(value) < WRITTEN_OUT
    return f"{value:,.0f}" if is_plain else f"{value:.4g}"
