"""Sentences and tables on the coverage of attacks' intervals and size estimates."""

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
    "True shares inside the interval",
    f"95{SPACE}% interval",
    "Mean width",
    "Size wrong by a factor of",
    "True sizes inside the interval",
)


def interval_words(exposure: Exposure) -> tuple[str, ...]:
    """Describe every attack's interval coverage, and the best attack's size estimate."""
    names = told_apart([case.label for case in exposure.cases])
    sizes = [case for case in exposure.cases if "size_factor" in case.whole]
    return (
        *coverage_words(exposure, "coverage", MEASURES["coverage"], "share"),
        *(_size(case, names[case.label], exposure) for case in sizes[:1]),
    )


def _size(case: Case, name: str, exposure: Exposure) -> str:
    row, coverage = case.whole["size_factor"], case.whole.get("size_coverage")
    cohort = f"{all_others(exposure.observers)} together"
    target = cohort if exposure.about == "cohort" else "a client"
    if row.value.mean == 0:
        # Sizes are reported with the updates, so nothing was estimated.
        return (
            f"{shown(name)} need not estimate how many examples {target} trained on: this "
            "number is sent with the updates."
        )
    sentence = (
        f"{shown(name)} estimates how many examples {target} trained on. It is wrong by a "
        f"factor of {_factor(row.value.mean)} on average{_factor_span(row)}."
    )
    if coverage is None:
        return sentence
    return (
        f"{sentence} Its {LEVEL} intervals contain the true number in "
        f"{percent(coverage.value.mean)} of cases"
        f"{bracketed_interval(coverage, MEASURES['size_coverage'])}."
    )


def _factor_span(row: Row) -> str:
    low, high = row.value.low, row.value.high
    if low is None or high is None:
        return ""
    return f" (95{SPACE}% interval {_factor(low)} to {_factor(high)})"


def _factor(doublings: float) -> str:
    return digits(2**doublings)


def intervals_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """Tabulate coverage and width of intervals, one table per threat.

    Rows use the most observed rounds. Attacks without intervals are left out.
    """
    tables = []
    for threat, exposures in by_threat(every).items():
        rows = tuple(
            _line(exposure.arm, case)
            for exposure in exposures
            for case in exposure.cases
            if case.whole.keys() & {"coverage", "size_factor"}
        )
        if rows:
            caption = f"How often {LEVEL} intervals contain the true value: {threat}"
            tables.append(Table(caption, HEADS, rows, 2))
    return tuple(tables)


def _line(arm: str, case: Case) -> tuple[str, ...]:
    coverage, size = case.whole.get("coverage"), case.whole.get("size_factor")
    return (
        shown(arm),
        shown(case.label),
        _told(coverage),
        NO_FIGURE if coverage is None else MEASURES["coverage"].span(coverage.value),
        _told(case.whole.get("width")),
        NO_FIGURE if size is None else _factor(size.value.mean),
        _told(case.whole.get("size_coverage")),
    )


def _told(row: Row | None) -> str:
    return NO_FIGURE if row is None else MEASURES[row.score].tell(row.value.mean)
