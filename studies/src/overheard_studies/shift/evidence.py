"""The evidence for or against a statement of the paper, in words."""

from collections.abc import Mapping

from overheard.findings.number_format import format_number
from overheard.report.experiment_page import Holds
from overheard.statistics.estimate import Estimate
from overheard_studies.shift.divergence import Divergence


def format_estimate(estimate: Estimate | None) -> str:
    """Format an estimate with its interval.

    >>> estimates = Estimate(2.0, 1.0, 3.0), Estimate(2.0, None, None), None
    >>> [format_estimate(estimate) for estimate in estimates]
    ['2.0 (1.0 to 3.0)', '2.0 (one run)', 'not measured']
    """
    if estimate is None:
        return "not measured"
    if estimate.low is None:
        return f"{format_number(estimate.mean)} (one run)"
    interval = f"{format_number(estimate.low)} to {format_number(estimate.high)}"
    return f"{format_number(estimate.mean)} ({interval})"


def group_by_verdict(parts: Mapping[str, Holds]) -> str:
    """List which parts hold, do not hold, or are undecided.

    >>> group_by_verdict({"a": "yes", "b": "undecided", "c": "yes"})
    'yes: a, c; undecided: b'
    """
    answers: tuple[Holds, ...] = ("yes", "no", "undecided")
    groups = {
        answer: ", ".join(name for name, holds in parts.items() if holds == answer)
        for answer in answers
    }
    return "; ".join(f"{answer}: {names}" for answer, names in groups.items() if names)


def describe_divergence(divergence: Divergence) -> str:
    """Describe the divergence of a measure from its trend."""
    return (
        f"divergence minus the control's {format_estimate(divergence.over_control)}, "
        f"{format_estimate(divergence.mean_deviation)} standard errors; by chance it exceeds "
        f"{format_number(divergence.outlier_deviation)} in one of twenty rounds"
    )
