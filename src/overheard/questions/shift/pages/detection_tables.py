"""The tables of how shifts are told from controls, alarmed at, and read."""

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
    """One figure of a table.

    Args:
        score: its name.
        beside: head of its guess; "" = that does not stand beside it.

    """

    score: str
    beside: str = ""

    def heads(self) -> list[str]:
        return [MEASURES[self.score].title, *([self.beside] if self.beside else [])]

    def cells(self, row: Row | None) -> list[str]:
        if row is None:
            return [NO_FIGURE] * len(self.heads())
        told = MEASURES[self.score]
        # Blind, or else as the claim itself states.
        guess = next(iter(row.references.values()), None) if row.blind is None else row.blind
        return [_spanned(row.value, told), *([told.tell(guess)] if self.beside else [])]


def _spanned(value: Estimate, told: Measure) -> str:
    """The figure with its interval; of a time that never ended, how long it is at least."""
    if value.low is None or value.high is None:
        return told.tell(value.mean)
    low, high = digits(value.low * told.factor), digits(value.high * told.factor)
    if isinf(value.mean):
        return f"{low}{told.unit} or more"
    return f"{told.tell(value.mean)} ({low} to {high})"


_TABLES = (
    (
        "Shifts told from controls",
        (
            _Column("auc", beside="Guessing"),
            _Column("auc_told"),
            _Column("power_at_5"),
            _Column("power_at_1"),
        ),
    ),
    (
        "Alarms that the attacks raise themselves",
        (
            _Column("detection_rate"),
            _Column("false_alarm_rate", beside="Stated"),
            _Column("rounds_between_false_alarms"),
            _Column("median_delay"),
        ),
    ),
    (
        "What is said of the round and the change",
        (
            _Column("round_error", beside="Guessing"),
            _Column("direction", beside="Guessing"),
            _Column("direction_detected"),
        ),
    ),
    (
        "What is said of the new shares, and how far intervals can be trusted",
        (
            _Column("risen_error", beside="Guessing"),
            _Column("risen_coverage"),
            _Column("coverage"),
            _Column("width"),
        ),
    ),
)


def detection_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """Up to four tables for each group of observers who ask about shifts.

    In brackets stand 95 % intervals. An attack that says nothing of a table's matter has no
    line in it.
    """
    tables = []
    for asked, exposures in by_threat(every).items():
        held = [(exposure.arm, case) for exposure in exposures for case in exposure.cases]
        for title, columns in _TABLES:
            lines = tuple(
                _line(arm, case, columns)
                for arm, case in held
                if any(column.score in case.whole for column in columns)
            )
            if lines:
                heads = ("Arm", "Attack", *(h for one in columns for h in one.heads()))
                tables.append(Table(f"{title} (95{SPACE}% interval): {asked}", heads, lines, 2))
    return tuple(tables)


def _line(arm: str, case: Case, columns: Sequence[_Column]) -> tuple[str, ...]:
    cells = [cell for column in columns for cell in column.cells(case.whole.get(column.score))]
    return (shown(arm), shown(case.label), *cells)
