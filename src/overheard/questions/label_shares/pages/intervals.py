"""Tells how far the intervals that attacks state, and their sizes, can be trusted."""

from collections.abc import Sequence

from overheard.core.claims import INTERVAL_LEVEL
from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, Case, Exposure, by_threat
from overheard.findings.figures import NO_FIGURE, SPACE, digits, measure, percent
from overheard.findings.names import all_others, shown, told_apart
from overheard.findings.row import Row

DISTRUSTED = 0.8
"""Intervals that hold the truth less often than this are called untrustworthy: a tenth below
what they say, more than chance takes off where a hundred shares were bounded."""

HEADS = (
    "Arm",
    "Attack",
    "True shares inside",
    f"95{SPACE}% interval",
    "Mean width",
    "Size off by the factor",
    "True sizes inside",
)

LEVEL = f"{100 * INTERVAL_LEVEL:.0f}{SPACE}%"


def interval_words(exposure: Exposure) -> tuple[str, ...]:
    """What attacks' own statements of uncertainty turned out to be worth.

    Of the bounds of every attack that gives some; of the size, the best attack's estimate.
    """
    names = told_apart([case.attack for case in exposure.cases])
    sizes = [case for case in exposure.cases if "size_factor" in case.whole]
    return (
        *(said for case in exposure.cases for said in _coverage(case, names[case.attack])),
        *(_size(case, names[case.attack], exposure) for case in sizes[:1]),
    )


def _coverage(case: Case, name: str) -> tuple[str, ...]:
    row = case.whole.get("coverage")
    if row is None:
        return ()
    what = "change" if _is_change(case) else "share"
    said = (
        f"The {LEVEL} intervals of {shown(name)} held the true {what} for "
        f"{percent(row.value.mean)} of the {what}s{_span(row)}"
    )
    if row.value.mean < DISTRUSTED:
        said += ": they are too narrow here, and cannot be trusted"
    return (f"{said}.",)


def _is_change(case: Case) -> bool:
    """Whether what is bounded is how shares changed, and not how large they are."""
    return "change_l1" in case.whole


def _size(case: Case, name: str, exposure: Exposure) -> str:
    row, held = case.whole["size_factor"], case.whole.get("size_coverage")
    cohort = f"{all_others(exposure.observers)} together"
    whom = cohort if exposure.about == "cohort" else "a client"
    if row.value.mean == 0:
        # As where sizes travel in clear beside the updates: nothing was estimated.
        return f"{shown(name)} is told in clear how many examples {whom} trained on."
    said = (
        f"{shown(name)} estimates how many examples {whom} trained on, off by a factor "
        f"of {_factor(row.value.mean)} on average{_factor_span(row)}"
    )
    if held is None:
        return f"{said}."
    share = percent(held.value.mean)
    return (
        f"{said}; its {LEVEL} intervals held the true number in {share} of cases{_span(held)}."
    )


def _span(row: Row) -> str:
    span = measure(row.score).span(row.value)
    return "" if span == NO_FIGURE else f" (95{SPACE}% interval {span})"


def _factor_span(row: Row) -> str:
    low, high = row.value.low, row.value.high
    if low is None or high is None:
        return ""
    return f" (95{SPACE}% interval {_factor(low)} to {_factor(high)})"


def _factor(doublings: float) -> str:
    return digits(2**doublings)


def intervals_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """Coverage and width of what attacks say with intervals, a table for each question.

    Over the most rounds heard; an attack that bounds nothing has no line. How a change of
    shares is bounded stands with the shifts.
    """
    tables = []
    for asked, exposures in by_threat(every).items():
        lines = tuple(
            _line(exposure.arm, case)
            for exposure in exposures
            for case in exposure.cases
            if case.whole.keys() & {"coverage", "size_factor"} and not _is_change(case)
        )
        if lines:
            tables.append(Table(f"How often {LEVEL} intervals held: {asked}", HEADS, lines, 2))
    return tuple(tables)


def _line(arm: str, case: Case) -> tuple[str, ...]:
    held, size = case.whole.get("coverage"), case.whole.get("size_factor")
    return (
        shown(arm),
        shown(case.attack),
        _told(held),
        NO_FIGURE if held is None else measure("coverage").span(held.value),
        _told(case.whole.get("width")),
        NO_FIGURE if size is None else _factor(size.value.mean),
        _told(case.whole.get("size_coverage")),
    )


def _told(row: Row | None) -> str:
    return NO_FIGURE if row is None else measure(row.score).tell(row.value.mean)
