"""Tells how far the intervals that attacks state, and their sizes, can be trusted."""

from collections.abc import Sequence

from overheard.drawing.coverage import LEVEL, coverage_words
from overheard.drawing.plates import Table
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.exposures import Arm, Case, Exposure, by_threat
from overheard.findings.figures import NO_FIGURE, SPACE, digits, percent
from overheard.findings.names import all_others, shown, told_apart
from overheard.findings.row import Row
from overheard.questions.label_shares.measures import MEASURES

HEADS = (
    "Arm",
    "Attack",
    "True shares inside",
    f"95{SPACE}% interval",
    "Mean width",
    "Size off by the factor",
    "True sizes inside",
)


def interval_words(exposure: Exposure) -> tuple[str, ...]:
    """What attacks' own statements of uncertainty turned out to be worth.

    Of the bounds of every attack that gives some; of the size, the best attack's estimate.
    """
    names = told_apart([case.label for case in exposure.cases])
    sizes = [case for case in exposure.cases if "size_factor" in case.whole]
    return (
        *coverage_words(exposure, "coverage", MEASURES["coverage"], "share"),
        *(_size(case, names[case.label], exposure) for case in sizes[:1]),
    )


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
        f"{said}; its {LEVEL} intervals held the true number in {share} of cases"
        f"{bracketed_interval(held, MEASURES['size_coverage'])}."
    )


def _factor_span(row: Row) -> str:
    low, high = row.value.low, row.value.high
    if low is None or high is None:
        return ""
    return f" (95{SPACE}% interval {_factor(low)} to {_factor(high)})"


def _factor(doublings: float) -> str:
    return digits(2**doublings)


def intervals_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """Coverage and width of what attacks say with intervals, a table for each group.

    Over the most rounds heard; an attack that bounds nothing has no line.
    """
    tables = []
    for asked, exposures in by_threat(every).items():
        lines = tuple(
            _line(exposure.arm, case)
            for exposure in exposures
            for case in exposure.cases
            if case.whole.keys() & {"coverage", "size_factor"}
        )
        if lines:
            tables.append(Table(f"How often {LEVEL} intervals held: {asked}", HEADS, lines, 2))
    return tuple(tables)


def _line(arm: str, case: Case) -> tuple[str, ...]:
    held, size = case.whole.get("coverage"), case.whole.get("size_factor")
    return (
        shown(arm),
        shown(case.label),
        _told(held),
        NO_FIGURE if held is None else MEASURES["coverage"].span(held.value),
        _told(case.whole.get("width")),
        NO_FIGURE if size is None else _factor(size.value.mean),
        _told(case.whole.get("size_coverage")),
    )


def _told(row: Row | None) -> str:
    return NO_FIGURE if row is None else MEASURES[row.score].tell(row.value.mean)
