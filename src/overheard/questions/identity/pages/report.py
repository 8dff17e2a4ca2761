"""The part of a report that tells how well users are re-identified: text, tables, figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportTable
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.score_tables import (
    ScoreCell,
    ScoreColumn,
    ScoreTable,
    control_value,
    guess_value,
    score_tables,
    value_with_interval,
)
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement, bracketed_interval
from overheard.drawing.users import (
    CONTROL_HEADER,
    INTERVALS_TERM,
    PAIR_COLUMNS,
    PAIRS_TERM,
    PAIRS_TITLE,
    UNMEASURED_REASON,
    control_sentence,
    pair_sentences,
    unmeasured_user_sentence,
    user_section,
)
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, SPACE, format_number, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult
from overheard.questions.identity.measures import MEASURES
from overheard.questions.identity.pages.identity_figures import identity_figures
from overheard.questions.identity.statistics.identity_rows import FALSE_POSITIVE_PERCENT

CellText = Callable[[ScoreCell], str]

_PRECISION = "mean_average_precision"

_OPEN_SET = f"dir_at_{FALSE_POSITIVE_PERCENT}_percent"
"""Score of naming users when some targets are of unknown users."""

_GAIN = "gain_over_published"


@final
@dataclass(frozen=True)
class IdentityPages(QuestionPages):
    """How well users are re-identified, beside uninformed guesses and the control run."""

    name = "identity"
    plain_question = "Which user, of those whose examples the attacker has, sent an update"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State how often the first guess is correct."""
        value = self.question.measure(row.score).format(row.value.mean)
        return Statement(
            "which user sent an update",
            f"names the user who sent an update, correct on the first guess in {value} of "
            "cases",
            f"correct on the first guess in {value} of cases",
        )

    def intro(self) -> str:
        """Explain the share of correct first guesses."""
        return "For the user who sent an update: how often the attack's first guess is correct."

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe rankings, pairs, unknown users, the control and the gain."""
        return identity_sentences(threat_result)

    def unmeasured_sentence(self, threat_result: ThreatResult) -> str:
        """State that no known user took part."""
        return unmeasured_user_sentence(threat_result)

    def unmeasured_reason(self) -> str:
        """Give the reason: no known user took part."""
        return UNMEASURED_REASON

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return the tables and figures."""
        return user_section(identity_tables(arm_results), identity_figures(arm_results))

    def terms(self) -> tuple[Term, ...]:
        """Explain precision, first guesses, pairs, unknown users and the control."""
        return _TERMS


_TERMS = (
    Term(
        "Mean average precision",
        "For each known user, all targets are ranked by how likely each is that user. Average "
        "precision is a mean over the user’s own targets: the share of the user’s targets "
        "among all targets ranked as high or higher. The figure is the mean over users (score "
        "mean_average_precision). Ties are broken at random. A random order reaches more than "
        "1 divided by the number of users. “Times chance” is the ratio to it; the ratio can "
        "grow with the number of users.",
    ),
    Term(
        "Correct on the first guess",
        "The share of targets whose true user has the highest score (score top1). Users with "
        "equal scores share a rank.",
    ),
    PAIRS_TERM,
    Term(
        f"Identified at 1{SPACE}% false positives",
        "The share of the known users’ targets that are named correctly and with stronger "
        f"evidence than all but 1{SPACE}% of the targets of users unknown to the attacker "
        "(score dir_at_1_percent).",
    ),
    Term(
        f"95{SPACE}% permutation range",
        "The range of the mean average precision if users are permuted at random among "
        "devices, each device with all that it sent. If the control lies outside this range, "
        "something other than their examples distinguishes the clients.",
    ),
    INTERVALS_TERM,
)


def identity_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe how well the best attack re-identifies users over all its targets."""
    attack_result = threat_result.attack_results[0]
    return (
        *_precision_sentences(attack_result),
        *pair_sentences(attack_result),
        *_open_set_sentences(attack_result),
        _control_sentence(attack_result),
        *_gain_sentences(attack_result, threat_result),
    )


def _precision_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    row, times = (
        attack_result.rows_by_score.get(_PRECISION),
        attack_result.rows_by_score.get("times_chance"),
    )
    if row is None or times is None:
        return ()
    return (
        "If all targets are ranked by how likely they come from a given user, the mean average "
        f"precision is {format_percent(row.value.mean)}{_interval(row)}. A random order "
        f"reaches {format_percent(row.best_uninformed)}, so the result is "
        f"{format_number(times.value.mean)} times chance.",
    )


def _open_set_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get(_OPEN_SET)
    if row is None:
        return ()
    count = row.references["unknown targets"]
    warning = (
        ""
        if count * FALSE_POSITIVE_PERCENT >= 100
        else " The targets of unknown users are too few to measure this rate."
    )
    return (
        f"If at most {FALSE_POSITIVE_PERCENT}{SPACE}% of the {count:.0f} targets of unknown "
        "users may be mistaken for a known user, the attack names the right user for "
        f"{format_percent(row.value.mean)} of the targets of known users"
        f"{_interval(row)}.{warning}",
    )


def _control_sentence(attack_result: AttackResult) -> str:
    row = attack_result.rows_by_score.get("control_excess")
    if row is None:
        return control_sentence(attack_result, MEASURES[attack_result.headline])
    low, high = (format_percent(row.references[f"null {end} %"]) for end in ("2.5", "97.5"))
    within = row.references["null 2.5 %"] <= row.value.mean <= row.references["null 97.5 %"]
    return (
        "In the control run, in which examples are reassigned at random among all clients, the "
        f"mean average precision is {format_percent(row.value.mean)}. This is "
        f"{'inside' if within else 'outside'} the 95{SPACE}% permutation range, {low} to "
        f"{high}."
    )


def _gain_sentences(
    attack_result: AttackResult, threat_result: ThreatResult
) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get(_GAIN)
    if row is None:
        return ()
    (published_attack,) = row.references
    gain, label = (
        MEASURES[row.score].format(row.value.mean),
        make_printable(threat_result.labels[published_attack]),
    )
    return (
        f"Compared user by user, the mean average precision is {gain} above that of "
        f"{label}{_interval(row)}.",
    )


def _interval(row: ScoreRow) -> str:
    return bracketed_interval(row, MEASURES[row.score])


def identity_tables(arms: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return up to five tables for each group of observers."""
    return score_tables(arms, _TABLES)


def _permutation_range(cell: ScoreCell) -> str:
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


def _column(score: str, header: str = "", text: CellText = value_with_interval) -> ScoreColumn:
    return ScoreColumn(score, MEASURES[score], header, text)


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
            _column(_OPEN_SET),
            _column(_OPEN_SET, "Unknown targets", _unknown_targets),
            _column(_OPEN_SET, CONTROL_HEADER, control_value),
            _column("unseen"),
            _column("unseen", "Even odds", guess_value),
        ),
    ),
    ScoreTable(
        "Control run: examples reassigned at random among all clients",
        (
            _column("control_excess"),
            _column("control_excess", "95 % permutation range", _permutation_range),
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
