"""Sentences on how well users are re-identified, compared with uninformed guesses."""

from overheard.drawing.sentences import bracketed_interval
from overheard.drawing.users import control_sentence, pair_sentences
from overheard.findings.names import make_printable
from overheard.findings.number_format import SPACE, format_number, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult, ThreatResult
from overheard.questions.identity.measures import MEASURES
from overheard.questions.identity.statistics.identity_rows import FALSE_POSITIVE_PERCENT


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
        attack_result.rows_by_score.get("mean_average_precision"),
        attack_result.rows_by_score.get("times_chance"),
    )
    if row is None or times is None:
        return ()
    return (
        "If all targets are ranked by how likely they come from a given user, the mean average "
        f"precision is {format_percent(row.value.mean)}{_interval(row)}. A random order "
        "reaches "
        f"{format_percent(row.blind)}, so the result is {format_number(times.value.mean)} "
        "times chance.",
    )


def _open_set_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get(f"dir_at_{FALSE_POSITIVE_PERCENT}_percent")
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
    row = attack_result.rows_by_score.get("gain_over_published")
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
