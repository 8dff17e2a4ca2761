"""Tables on the detection of shifts, alarms, and the claimed change."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, Case, by_threat
from overheard.findings.figures import NO_FIGURE, SPACE, Measure, digits
from overheard.findings.names import shown
from overheard.findings.row import Row
from overheard.questions.shift.measures import MEASURES
from overheard.statistics.estimate import Estimate


@dataclass(frozen=True, slots=True)
class _Column:
    """One score in a table, with or without a column for guessing.

    Args:
        score: the name of the score.
        beside: the head of the column for guessing; "" = no such column.

    """

    score: str
    beside: str = ""

    def heads(self) -> list[str]:
        return [MEASURES[self.score].title, *([self.beside] if self.beside else [])]

    def cells(self, row: Row | None) -> list[str]:
        if row is None:
            return [NO_FIGURE] * len(self.heads())
        measure = MEASURES[self.score]
        # Without an uninformed guess, the rate that the claim itself states.
        guess = next(iter(row.references.values()), None) if row.blind is None else row.blind
        return [_spanned(row.value, measure), *([measure.tell(guess)] if self.beside else [])]


def _spanned(value: Estimate, measure: Measure) -> str:
    """Format the value with its interval; for an infinite time, only its lower bound."""
    if value.low is None or value.high is None:
        return measure.tell(value.mean)
    low, high = digits(value.low * measure.factor), digits(value.high * measure.factor)
    if isinf(value.mean):
        return f"{low}{measure.unit} or more"
    return f"{measure.tell(value.mean)} ({low} to {high})"


_TABLES = (
    (
        "Shifts compared with controls",
        (
            _Column("auc", beside="Guessing"),
            _Column("auc_told"),
            _Column("power_at_5"),
            _Column("power_at_1"),
        ),
    ),
    (
        "Alarms raised by the attacks",
        (
            _Column("detection_rate"),
            _Column("false_alarm_rate", beside="Stated"),
            _Column("rounds_between_false_alarms"),
            _Column("median_delay"),
        ),
    ),
    (
        "Claimed round and change",
        (
            _Column("round_error", beside="Guessing"),
            _Column("direction", beside="Guessing"),
            _Column("direction_detected"),
        ),
    ),
    (
        "Claimed shares after the shift, and coverage of the intervals",
        (
            _Column("risen_error", beside="Guessing"),
            _Column("risen_coverage"),
            _Column("coverage"),
            _Column("width"),
        ),
    ),
)


def detection_tables(arms: Sequence[Arm]) -> tuple[Table, ...]:
    """Return up to four tables for each group of observers with claims about shifts.

    Brackets hold 95 % intervals. A table omits attacks that have none of its scores.
    """
    tables = []
    for threat, exposures in by_threat(arms).items():
        cases = [(exposure.arm, case) for exposure in exposures for case in exposure.cases]
        for title, columns in _TABLES:
            lines = tuple(
                _line(arm, case, columns)
                for arm, case in cases
                if any(column.score in case.whole for column in columns)
            )
            if lines:
                heads = (
                    "Arm",
                    "Attack",
                    *(head for column in columns for head in column.heads()),
                )
                tables.append(
                    Table(f"{title} (95{SPACE}% interval): {threat}", heads, lines, 2)
                )
    return tuple(tables)


def _line(arm: str, case: Case, columns: Sequence[_Column]) -> tuple[str, ...]:
    cells = [cell for column in columns for cell in column.cells(case.whole.get(column.score))]
    return (shown(arm), shown(case.label), *cells)
