"""Tables of scores by arm and attack, without empty columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, Case, Exposure, by_threat
from overheard.findings.figures import NO_FIGURE, SPACE, Measure
from overheard.findings.names import shown
from overheard.findings.row import CONTROL, Row


@final
@dataclass(frozen=True, slots=True)
class ScoreCell:
    """The content of a cell.

    Args:
        row: the result of one attack.
        told: how its score is written.
        exposure: the threat that the attack belongs to.

    """

    row: Row
    told: Measure
    exposure: Exposure


def with_interval(cell: ScoreCell) -> str:
    """Return the value, with its interval in brackets."""
    span = cell.told.span(cell.row.value)
    value = cell.told.tell(cell.row.value.mean)
    return value + (f" ({span})" if span != NO_FIGURE else "")


def blind_guess(cell: ScoreCell) -> str:
    """Return the score of the uninformed guess."""
    return cell.told.tell(cell.row.blind)


def in_control(cell: ScoreCell) -> str:
    """Return the score of the same attack in the control."""
    return cell.told.tell(cell.row.references.get(CONTROL))


@final
@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One column of a score table.

    Args:
        score: name of the score.
        told: how the score is written.
        head: of the column; "" = the score's title.
        cell: returns the text of a cell.
        is_word: whether the cells are text instead of numbers; text columns come first.

    """

    score: str
    told: Measure
    head: str = ""
    cell: Callable[[ScoreCell], str] = with_interval
    is_word: bool = False


@final
@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The title of a table and its possible columns."""

    title: str
    columns: tuple[ScoreColumn, ...]


def score_tables(every: Sequence[Arm], tables: Sequence[ScoreTable]) -> tuple[Table, ...]:
    """Return these tables for each threat, with the best attacks first.

    Brackets contain 95 % intervals. Attacks without any score of a table are left out of it, as
    are columns whose score no attack has.
    """
    return tuple(
        filled
        for title, exposures in by_threat(every).items()
        for table in tables
        if (filled := _table(table, title, exposures)) is not None
    )


def _table(table: ScoreTable, threat_title: str, exposures: Sequence[Exposure]) -> Table | None:
    cases = [(exposure, case) for exposure in exposures for case in exposure.cases]
    columns = [
        column
        for column in table.columns
        if any(column.score in case.whole for _, case in cases)
    ]
    lines = tuple(
        _line(exposure, case, columns)
        for exposure, case in cases
        if any(column.score in case.whole for column in columns)
    )
    if not lines:
        return None
    return Table(
        f"{table.title} (95{SPACE}% interval): {threat_title}",
        ("Arm", "Attack", *(column.head or column.told.title for column in columns)),
        lines,
        2 + sum(column.is_word for column in columns),
    )


def _line(exposure: Exposure, case: Case, columns: Sequence[ScoreColumn]) -> tuple[str, ...]:
    rows: Mapping[str, Row] = case.whole
    cells = (
        column.cell(ScoreCell(rows[column.score], column.told, exposure))
        if column.score in rows
        else NO_FIGURE
        for column in columns
    )
    return (shown(exposure.arm), shown(case.label), *cells)
