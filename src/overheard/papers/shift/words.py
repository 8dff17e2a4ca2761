"""Says by which numbers a sentence of the paper holds or does not."""

from collections.abc import Mapping

from overheard.findings.figures import digits
from overheard.papers.shift.divergence import Divergence
from overheard.report.experiment_page import Holds
from overheard.statistics.estimate import Estimate


def number(told: Estimate | None) -> str:
    """An estimate with its interval.

    >>> number(Estimate(2.0, 1.0, 3.0)), number(Estimate(2.0, None, None)), number(None)
    ('2.0 (1.0 to 3.0)', '2.0 (one run)', 'not measured')
    """
    if told is None:
        return "not measured"
    if told.low is None:
        return f"{digits(told.mean)} (one run)"
    return f"{digits(told.mean)} ({digits(told.low)} to {digits(told.high)})"


def by_answer(parts: Mapping[str, Holds]) -> str:
    """Which of several parts hold.

    >>> by_answer({"a": "yes", "b": "undecided", "c": "yes"})
    'yes: a, c; undecided: b'
    """
    answers: tuple[Holds, ...] = ("yes", "no", "undecided")
    groups = {
        answer: ", ".join(name for name, holds in parts.items() if holds == answer)
        for answer in answers
    }
    return "; ".join(f"{answer}: {names}" for answer, names in groups.items() if names)


def off_trend(told: Divergence) -> str:
    """How far off its trend a measure is."""
    return (
        f"divergence minus the control's {number(told.over_control)}, "
        f"{number(told.deviation)} standard errors, of which chance exceeds "
        f"{digits(told.outlier)} in one of twenty rounds"
    )
