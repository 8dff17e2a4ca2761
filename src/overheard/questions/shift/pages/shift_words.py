"""Tells in plain sentences how a shift is noticed, when, and which way."""

from overheard.drawing.sentences import bracketed_interval
from overheard.findings.exposures import Case
from overheard.findings.figures import SPACE, percent
from overheard.findings.row import Row
from overheard.questions.shift.measures import MEASURES


def shift_words(case: Case) -> tuple[str, ...]:
    """What the best attack's evidence and alarms are worth."""
    return (*_at_stated_alarms(case), *_own_alarm(case), *_direction(case))


def _at_stated_alarms(case: Case) -> tuple[str, ...]:
    found = [
        f"{percent(row.value.mean)}{_span(row)} at {level}{SPACE}% false alarms"
        for level in (5, 1)
        if (row := case.whole.get(f"power_at_{level}")) is not None
    ]
    told = case.whole["auc_told"]
    when = f"Told the round, it is right in {MEASURES['auc'].tell(told.value.mean)} pairs"
    if not found:
        few = "too few controls ran to say how many shifts it finds at 5 % false alarms"
        return (f"{when}; {few.replace(' %', f'{SPACE}%')}.",)
    return (f"{when}; not told, it finds {' and '.join(found)}.",)


def _own_alarm(case: Case) -> tuple[str, ...]:
    found, false = case.whole.get("detection_rate"), case.whole.get("false_alarm_rate")
    if found is None or false is None:
        return ("It states no threshold, so it raises no alarm of its own.",)
    stated = false.references.get("stated")
    beside = "" if stated is None else f"; stated {percent(stated)}"
    said = (
        f"Its own alarm goes off at {percent(found.value.mean)} of shifts{_span(found)}, and "
        f"in {percent(false.value.mean)} of controls{_span(false, beside)}"
    )
    delay = case.whole.get("median_delay")
    if delay is None:
        return (f"{said}.",)
    return (f"{said}; {_late(delay.value.mean)}.",)


def _late(rounds: float) -> str:
    if rounds == 0:
        return "half of the alarms come in the round of the shift"
    return f"half of the alarms come within {rounds:g}{SPACE}rounds"


def _direction(case: Case) -> tuple[str, ...]:
    right = case.whole.get("direction_detected") or case.whole.get("direction")
    if right is None:
        return ()
    where = "of those" if right.score == "direction_detected" else "of shifts"
    said = f"Which classes rose it has right in {percent(right.value.mean)} {where}"
    off = case.whole.get("risen_error")
    if off is None:
        return (f"{said} (guessing: {percent(right.blind)}).",)
    share = MEASURES["risen_error"].tell(off.value.mean)
    guess = MEASURES["risen_error"].tell(off.blind)
    return (f"{said}, and their share of the new data to within {share} (guessing: {guess}).",)


def _span(row: Row, beside: str = "") -> str:
    return bracketed_interval(row, MEASURES[row.score], beside)
