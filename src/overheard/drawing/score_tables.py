"""Tables of scores by arm and attack, with as many columns as there are figures for."""

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
    """What a cell is made of.

    Args:
        row: the score of one attack.
        told: how that is told.
        exposure: in which the attack stands.

    """

    row: Row
    told: Measure
    exposure: Exposure


def with_interval(cell: ScoreCell) -> str:
    """The figure, and its interval in brackets."""
    span = cell.told.span(cell.row.value)
    value = cell.told.tell(cell.row.value.mean)
    return value + (f" ({span})" if span != NO_FIGURE else "")


def blind_guess(cell: ScoreCell) -> str:
    """What a guess gets that heard nothing."""
    return cell.told.tell(cell.row.blind)


def in_control(cell: ScoreCell) -> str:
    """What the same attack gets in the control."""
    return cell.told.tell(cell.row.references.get(CONTROL))


@final
@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One figure of a table.

    Args:
        score: its name.
        told: how that is told.
        head: of the column; "" = the score's title.
        cell: what stands in it.
        is_word: whether that is a word and no figure; words come first.

    """

    score: str
    told: Measure
    head: str = ""
    cell: Callable[[ScoreCell], str] = with_interval
    is_word: bool = False


@final
@dataclass(frozen=True, slots=True)
class ScoreTable:
    """What a table is called, and the columns that it may have."""

    title: str
    columns: tuple[ScoreColumn, ...]


def score_tables(every: Sequence[Arm], tables: Sequence[ScoreTable]) -> tuple[Table, ...]:
    """As many tables for each group of observers, of the best attacks first.

    In brackets stand 95 % intervals. An attack that has no figure of a table has no line in
    it, and a figure that no attack has makes no column.
    """
    return tuple(
        told
        for asked, exposures in by_threat(every).items()
        for table in tables
        if (told := _table(table, asked, exposures)) is not None
    )


def _table(table: ScoreTable, asked: str, exposures: Sequence[Exposure]) -> Table | None:
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
        f"{table.title} (95{SPACE}% interval): {asked}",
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
