"""Tables of re-identification, beside uninformed guesses and the control run."""

from collections.abc import Callable, Sequence

from overheard.drawing.figures import ReportTable
from overheard.drawing.score_tables import (
    ScoreCell,
    ScoreColumn,
    ScoreTable,
    control_value,
    guess_value,
    score_tables,
    value_with_interval,
)
from overheard.drawing.users import CONTROL_HEADER, PAIR_COLUMNS, PAIRS_TITLE
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, SPACE, format_number
from overheard.findings.threat_results import ArmResult
from overheard.questions.identity.measures import MEASURES
from overheard.questions.identity.statistics.identity_rows import FALSE_POSITIVE_PERCENT

CellText = Callable[[ScoreCell], str]


def identity_tables(arms: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return up to five tables for each group of observers."""
    return score_tables(arms, _TABLES)


def _permutation_interval(cell: ScoreCell) -> str:
    low, high = (
        format_number(100 * cell.row.references[f"null {end} %"]) for end in ("2.5", "97.5")
    )
    return f"{low} to {high}{SPACE}%"


def _inside_or_outside(cell: ScoreCell) -> str:
    low, high = (cell.row.references[f"null {end} %"] for end in ("2.5", "97.5"))
    return "inside" if low <= cell.row.value.mean <= high else "outside"


def _one_in_users(cell: ScoreCell) -> str:
    return cell.measure.format(cell.row.references["1 / users"])


def _unknown_targets(cell: ScoreCell) -> str:
    return f"{cell.row.references['unknown targets']:.0f}"


def _published_labels(cell: ScoreCell) -> str:
    labels = cell.threat_result.labels
    published = [make_printable(labels[attack]) for attack in cell.row.references]
    return "; ".join(published) or NO_NUMBER


def _column(score: str, head: str = "", cell: CellText = value_with_interval) -> ScoreColumn:
    return ScoreColumn(score, MEASURES[score], head, cell)


_PRECISION, _OPEN = "mean_average_precision", f"dir_at_{FALSE_POSITIVE_PERCENT}_percent"

_GAIN = "gain_over_published"

_TABLES = (
    ScoreTable(
        "Re-identification",
        (
            _column(_PRECISION),
            _column(_PRECISION, "Random order", guess_value),
            _column(_PRECISION, "1 / users", _one_in_users),
            _column("times_chance"),
            _column("top1"),
            _column("top5"),
        ),
    ),
    ScoreTable(PAIRS_TITLE, PAIR_COLUMNS),
    ScoreTable(
        "Users unknown to the attacker",
        (
            _column(_OPEN),
            _column(_OPEN, "Unknown targets", _unknown_targets),
            _column(_OPEN, CONTROL_HEADER, control_value),
            _column("unseen"),
            _column("unseen", "Even odds", guess_value),
        ),
    ),
    ScoreTable(
        "Control run: examples reassigned at random among all clients",
        (
            _column("control_excess"),
            _column("control_excess", "95 % permutation range", _permutation_interval),
            _column("control_excess", "Position of the control", _inside_or_outside),
        ),
    ),
    ScoreTable(
        "Gain over the published attack, paired by user",
        (
            ScoreColumn(
                _GAIN, MEASURES[_GAIN], "Compared with", _published_labels, is_text=True
            ),
            _column(_GAIN),
        ),
    ),
)
