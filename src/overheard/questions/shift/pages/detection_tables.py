"""Tables on the detection of shifts, alarms, and the claimed change."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, SPACE, Measure, format_number
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, group_by_threat
from overheard.questions.shift.measures import MEASURES
from overheard.statistics.estimate import Estimate


@dataclass(frozen=True, slots=True)
class _DetectionColumn:
    """One score in a table, with or without a column for guessing.

    Args:
        score: the name of the score.
        guess_head: the head of the column for guessing; "" = no such column.

    """

    score: str
    guess_head: str = ""

    def heads(self) -> list[str]:
        return [MEASURES[self.score].title, *([self.guess_head] if self.guess_head else [])]

    def cells(self, row: ScoreRow | None) -> list[str]:
        if row is None:
            return [NO_NUMBER] * len(self.heads())
        measure = MEASURES[self.score]
        # Without an uninformed guess, the rate that the claim itself states.
        guess = next(iter(row.references.values()), None) if row.blind is None else row.blind
        return [
            _with_interval(row.value, measure),
            *([measure.format(guess)] if self.guess_head else []),
        ]


def _with_interval(value: Estimate, measure: Measure) -> str:
    """Format the value with its interval; for an infinite time, only its lower bound."""
    if value.low is None or value.high is None:
        return measure.format(value.mean)
    low, high = (
        format_number(value.low * measure.factor),
        format_number(value.high * measure.factor),
    )
    if isinf(value.mean):
        return f"{low}{measure.unit} or more"
    return f"{measure.format(value.mean)} ({low} to {high})"


_TABLES = (
    (
        "Shifts compared with controls",
        (
            _DetectionColumn("auc", guess_head="Guessing"),
            _DetectionColumn("auc_told"),
            _DetectionColumn("power_at_5"),
            _DetectionColumn("power_at_1"),
        ),
    ),
    (
        "Alarms raised by the attacks",
        (
            _DetectionColumn("detection_rate"),
            _DetectionColumn("false_alarm_rate", guess_head="Stated"),
            _DetectionColumn("rounds_between_false_alarms"),
            _DetectionColumn("median_delay"),
            _DetectionColumn("not_calibrated"),
        ),
    ),
    (
        "Shifts compared with exact controls",
        (
            _DetectionColumn("auc_exact", guess_head="Guessing"),
            _DetectionColumn("power_at_5_exact"),
            _DetectionColumn("false_alarm_rate_exact", guess_head="Stated"),
        ),
    ),
    (
        "Claimed round and change",
        (
            _DetectionColumn("round_error", guess_head="Guessing"),
            _DetectionColumn("direction", guess_head="Guessing"),
            _DetectionColumn("direction_detected"),
        ),
    ),
    (
        "Claimed shares after the shift, and coverage of the intervals",
        (
            _DetectionColumn("risen_error", guess_head="Guessing"),
            _DetectionColumn("risen_coverage"),
            _DetectionColumn("coverage"),
            _DetectionColumn("width"),
        ),
    ),
)


def detection_tables(arms: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return up to five tables for each group of observers with claims about shifts.

    Brackets hold 95 % intervals. A table omits attacks that have none of its scores.
    """
    tables = []
    for threat, threat_results in group_by_threat(arms).items():
        attack_results = [
            (threat_result.arm, attack_result)
            for threat_result in threat_results
            for attack_result in threat_result.attack_results
        ]
        for title, columns in _TABLES:
            lines = tuple(
                _table_row(arm, attack_result, columns)
                for arm, attack_result in attack_results
                if any(column.score in attack_result.rows_by_score for column in columns)
            )
            if lines:
                heads = (
                    "Arm",
                    "Attack",
                    *(head for column in columns for head in column.heads()),
                )
                tables.append(
                    ReportTable(f"{title} (95{SPACE}% interval): {threat}", heads, lines, 2)
                )
    return tuple(tables)


def _table_row(
    arm: str, attack_result: AttackResult, columns: Sequence[_DetectionColumn]
) -> tuple[str, ...]:
    cells = [
        cell
        for column in columns
        for cell in column.cells(attack_result.rows_by_score.get(column.score))
    ]
    return (make_printable(arm), make_printable(attack_result.label), *cells)
