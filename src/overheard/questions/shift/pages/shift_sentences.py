"""Sentences on whether, when and in which direction a shift is detected."""

from overheard.drawing.sentences import bracketed_interval
from overheard.findings.number_format import SPACE, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult
from overheard.questions.shift.measures import MEASURES


def shift_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    """Describe how well the best attack detects shifts."""
    return (
        *_power_sentence(attack_result),
        *_alarm_sentence(attack_result),
        *_direction_sentence(attack_result),
    )


def _power_sentence(attack_result: AttackResult) -> tuple[str, ...]:
    found = [
        f"{format_percent(row.value.mean)} of shifts{_interval(row)} at {level}{SPACE}% false "
        "alarms"
        for level in (5, 1)
        if (row := attack_result.rows_by_score.get(f"power_at_{level}")) is not None
    ]
    pairs = MEASURES["auc"].format(attack_result.rows_by_score["auc_told"].value.mean)
    known = f"If the round of the shift is known, the attack is correct in {pairs} pairs."
    if not found:
        few = f"There are too few controls to measure detection at 5{SPACE}% false alarms."
        return (f"{known} {few}",)
    return (f"{known} If it is unknown, the attack detects {' and '.join(found)}.",)


def _alarm_sentence(attack_result: AttackResult) -> tuple[str, ...]:
    found, false = (
        attack_result.rows_by_score.get("detection_rate"),
        attack_result.rows_by_score.get("false_alarm_rate"),
    )
    if found is None or false is None:
        silent = _uncalibrated_sentence(attack_result).strip()
        return (silent or "The attack states no threshold, so it raises no alarm.",)
    stated = false.references.get("stated")
    stated_rate = "" if stated is None else f"; stated rate: {format_percent(stated)}"
    alarms = (
        f"Its alarm detects {format_percent(found.value.mean)} of shifts{_interval(found)} and "
        "is raised "
        f"in {format_percent(false.value.mean)} of controls{_interval(false, stated_rate)}"
        f"{_exact_clause(attack_result)}.{_uncalibrated_sentence(attack_result)}"
    )
    delay = attack_result.rows_by_score.get("median_delay")
    if delay is None:
        return (alarms,)
    return (f"{alarms} {_delay_clause(delay.value.mean)}",)


def _exact_clause(attack_result: AttackResult) -> str:
    """State the alarms in exact controls; nothing if there are none of these controls."""
    exact = attack_result.rows_by_score.get("false_alarm_rate_exact")
    if exact is None:
        return ""
    return f", and in {format_percent(exact.value.mean)} of exact controls{_interval(exact)}"


def _uncalibrated_sentence(attack_result: AttackResult) -> str:
    """State in how many runs the attack gave no alarm; nothing if it always did."""
    row = attack_result.rows_by_score.get("not_calibrated")
    if row is None or row.value.mean == 0:
        return ""
    return (
        f" In {format_percent(row.value.mean)} of runs it is not calibrated: it cannot keep "
        "the stated rate, and gives no alarm. These runs do not count in the other rates."
    )


def _delay_clause(rounds: float) -> str:
    if rounds == 0:
        return "At least half of the detections come in the round of the shift."
    return f"The median delay of the detections is {rounds:g}{SPACE}rounds."


def _direction_sentence(attack_result: AttackResult) -> tuple[str, ...]:
    right = attack_result.rows_by_score.get(
        "direction_detected"
    ) or attack_result.rows_by_score.get("direction")
    if right is None:
        return ()
    which = "detected shifts" if right.score == "direction_detected" else "shifts"
    correct = (
        "The attack correctly states which classes rose for "
        f"{format_percent(right.value.mean)} of "
        f"{which}"
    )
    error = attack_result.rows_by_score.get("risen_error")
    if error is None:
        return (f"{correct} (guessing: {format_percent(right.blind)}).",)
    size = MEASURES["risen_error"].format(error.value.mean)
    guess = MEASURES["risen_error"].format(error.blind)
    return (
        f"{correct}. Its estimate of their share after the shift is off by {size} (guessing: "
        f"{guess}).",
    )


def _interval(row: ScoreRow, addition: str = "") -> str:
    return bracketed_interval(row, MEASURES[row.score], addition)
