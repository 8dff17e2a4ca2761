"""The tables of how well people are recognised, beside chance and beside the control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, Case, by_threat
from overheard.findings.figures import NO_FIGURE, SPACE, digits, measure
from overheard.findings.names import shown
from overheard.findings.row import CONTROL, Row
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.identity.statistics.identity_rows import FALSE_ALARMS
from overheard.questions.same_sender.scorer import SameSenderScorer

PERSONAL = (IdentityScorer.name, SameSenderScorer.name, AttributeScorer.name)
"""The questions about the person behind a target."""

Cell = Callable[[Row], str]


def _value(row: Row) -> str:
    told = measure(row.score)
    span = told.span(row.value)
    return told.tell(row.value.mean) + (f" ({span})" if span != NO_FIGURE else "")


def _blind(row: Row) -> str:
    return measure(row.score).tell(row.blind)


def _control(row: Row) -> str:
    return measure(row.score).tell(row.references.get(CONTROL))


def _null(row: Row) -> str:
    low, high = (digits(100 * row.references[f"null {end} %"]) for end in ("2.5", "97.5"))
    return f"{low} to {high}{SPACE}%"


def _verdict(row: Row) -> str:
    ends = (row.references["null 2.5 %"], row.references["null 97.5 %"])
    return "inside" if ends[0] <= row.value.mean <= ends[1] else "outside"


def _users(row: Row) -> str:
    return measure(row.score).tell(row.references["1 / users"])


def _unknown(row: Row) -> str:
    return f"{row.references['unknown targets']:.0f}"


def _base(row: Row) -> str:
    return "; ".join(map(shown, row.references)) or NO_FIGURE


@final
@dataclass(frozen=True, slots=True)
class _Column:
    """One figure of a table: of which score, and what of its row; words come first."""

    score: str
    head: str
    cell: Cell
    is_word: bool = False


def _measured(score: str) -> _Column:
    return _Column(score, measure(score).title, _value)


_PRECISION, _OPEN = "mean_average_precision", f"dir_at_{FALSE_ALARMS}_percent"

_TABLES: tuple[tuple[str, tuple[_Column, ...]], ...] = (
    (
        "Who it is",
        (
            _measured(_PRECISION),
            _Column(_PRECISION, "Random order", _blind),
            _Column(_PRECISION, "1 / users", _users),
            _measured("times_chance"),
            _measured("top1"),
            _measured("top5"),
        ),
    ),
    (
        "Pairs told apart by one threshold",
        (
            _measured("average_precision"),
            _Column("average_precision", "Random order", _blind),
            _measured("matching_auc"),
            _Column("matching_auc", "In the control", _control),
            _measured("equal_error_rate"),
            _Column("equal_error_rate", "In the control", _control),
        ),
    ),
    (
        "Users whom the attacker does not know",
        (
            _measured(_OPEN),
            _Column(_OPEN, "Unknown targets", _unknown),
            _Column(_OPEN, "In the control", _control),
            _measured("unseen"),
            _Column("unseen", "Even odds", _blind),
        ),
    ),
    (
        "What a person is like",
        (
            _measured("accuracy"),
            _Column("accuracy", "Guessing", _blind),
            _Column("accuracy", "In the control", _control),
            _measured("balanced_accuracy"),
            _Column("balanced_accuracy", "Guessing", _blind),
        ),
    ),
    (
        "The control: examples dealt anew among all clients",
        (
            _measured("control_excess"),
            _Column("control_excess", "Identities swapped: 95 % of draws", _null),
            _Column("control_excess", "The control lies", _verdict),
        ),
    ),
    (
        "Gain over the published attack, user by user",
        (
            _Column("gain_over_published", "Over", _base, is_word=True),
            _measured("gain_over_published"),
        ),
    ),
)


def identity_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """Up to six tables for each group of observers who ask about people.

    In brackets stand 95 % intervals. An attack that says nothing of a table's matter has no
    line in it.
    """
    tables = []
    for asked, exposures in by_threat(every).items():
        held = [
            (exposure.arm, case)
            for exposure in exposures
            if exposure.question in PERSONAL
            for case in exposure.cases
        ]
        for title, every_column in _TABLES:
            # A score of another question would be a column of dashes.
            columns = [
                column
                for column in every_column
                if any(column.score in case.whole for _, case in held)
            ]
            lines = tuple(
                _line(arm, case, columns)
                for arm, case in held
                if any(column.score in case.whole for column in columns)
            )
            if lines:
                heads = ("Arm", "Attack", *(column.head for column in columns))
                told = f"{title} (95{SPACE}% interval): {asked}"
                words = 2 + sum(column.is_word for column in columns)
                tables.append(Table(told, heads, lines, words))
    return tuple(tables)


def _line(arm: str, case: Case, columns: Sequence[_Column]) -> tuple[str, ...]:
    rows = [(column, case.whole.get(column.score)) for column in columns]
    cells = [NO_FIGURE if row is None else column.cell(row) for column, row in rows]
    return (shown(arm), shown(case.attack), *cells)
