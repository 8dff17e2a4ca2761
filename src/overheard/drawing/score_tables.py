"""Tables of scores by arm and attack, without empty columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, SPACE, Measure
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    group_by_threat,
)


@final
@dataclass(frozen=True, slots=True)
class ScoreCell:
    """The content of a cell.

    Args:
        row: the result of one attack.
        measure: how its score is written.
        threat_result: the threat that the attack belongs to.

    """

    row: ScoreRow
    measure: Measure
    threat_result: ThreatResult


def value_with_interval(cell: ScoreCell) -> str:
    """Return the value, with its interval in brackets."""
    span = cell.measure.format_interval(cell.row.value)
    value = cell.measure.format(cell.row.value.mean)
    return value + (f" ({span})" if span != NO_NUMBER else "")


def guess_value(cell: ScoreCell) -> str:
    """Return the score of the uninformed guess."""
    return cell.measure.format(cell.row.best_uninformed)


def control_value(cell: ScoreCell) -> str:
    """Return the score of the same attack in the control."""
    return cell.measure.format(cell.row.references.get(CONTROL_NAME))


@final
@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One column of a score table.

    Args:
        score: name of the score.
        measure: how the score is written.
        header: the header of the column; "" = the score's title.
        cell: returns the text of a cell.
        is_text: whether the cells are text instead of numbers; text columns come first.

    """

    score: str
    measure: Measure
    header: str = ""
    cell: Callable[[ScoreCell], str] = value_with_interval
    is_text: bool = False


@final
@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The title of a table and its possible columns."""

    title: str
    columns: tuple[ScoreColumn, ...]


def score_tables(
    arm_results: Sequence[ArmResult], tables: Sequence[ScoreTable]
) -> tuple[ReportTable, ...]:
    """Return these tables for each threat, with the best attacks first.

    Brackets contain 95 % intervals. Attacks without any score of a table are left out of it, as
    are columns whose score no attack has.
    """
    return tuple(
        filled
        for title, threat_results in group_by_threat(arm_results).items()
        for table in tables
        if (filled := _table(table, title, threat_results)) is not None
    )


def _table(
    table: ScoreTable, threat_title: str, threat_results: Sequence[ThreatResult]
) -> ReportTable | None:
    attack_results = [
        (threat_result, attack_result)
        for threat_result in threat_results
        for attack_result in threat_result.attack_results
    ]
    columns = [
        column
        for column in table.columns
        if any(
            column.score in attack_result.rows_by_score for _, attack_result in attack_results
        )
    ]
    lines = tuple(
        _score_row(threat_result, attack_result, columns)
        for threat_result, attack_result in attack_results
        if any(column.score in attack_result.rows_by_score for column in columns)
    )
    if not lines:
        return None
    return ReportTable(
        f"{table.title} (95{SPACE}% interval): {threat_title}",
        ("Arm", "Attack", *(column.header or column.measure.title for column in columns)),
        lines,
        2 + sum(column.is_text for column in columns),
    )


def _score_row(
    threat_result: ThreatResult, attack_result: AttackResult, columns: Sequence[ScoreColumn]
) -> tuple[str, ...]:
    rows: Mapping[str, ScoreRow] = attack_result.rows_by_score
    cells = (
        column.cell(ScoreCell(rows[column.score], column.measure, threat_result))
        if column.score in rows
        else NO_NUMBER
        for column in columns
    )
    return (make_printable(threat_result.arm), make_printable(attack_result.label), *cells)
