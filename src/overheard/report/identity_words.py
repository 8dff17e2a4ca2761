"""Tells in plain sentences how well people are recognised, and what that is worth."""

from overheard.findings.exposures import Case
from overheard.findings.figures import NO_FIGURE, SPACE, digits, measure, percent
from overheard.findings.names import shown
from overheard.findings.row import CONTROL, Row
from overheard.questions.identity.statistics.identity_rows import FALSE_ALARMS
from overheard.report.identity_tables import PERSONAL


def identity_words(case: Case) -> tuple[str, ...]:
    """What the best attack is worth over all its targets; nothing of another question."""
    if case.row.question not in PERSONAL:
        return ()
    return (
        *_ranked(case),
        *_pairs(case),
        *_strangers(case),
        *_control(case),
        *_gain(case),
    )


def _ranked(case: Case) -> tuple[str, ...]:
    row, times = case.whole.get("mean_average_precision"), case.whole.get("times_chance")
    if row is None or times is None:
        return ()
    return (
        f"Looking for one user among all that was sent, it finds what is that user's with an "
        f"average precision of {percent(row.value.mean)}{_span(row)}; a random order gets "
        f"{percent(row.blind)}, so that is {digits(times.value.mean)} times chance.",
    )


def _pairs(case: Case) -> tuple[str, ...]:
    row = case.whole.get("equal_error_rate")
    if row is None:
        return ()
    return (
        f"Told to say yes or no to a pair, it is wrong in {percent(row.value.mean)} either way"
        f"{_span(row)}; guessing is in {percent(row.blind)}.",
    )


def _strangers(case: Case) -> tuple[str, ...]:
    row = case.whole.get(f"dir_at_{FALSE_ALARMS}_percent")
    if row is None:
        return ()
    count = row.references["unknown targets"]
    few = "" if count * FALSE_ALARMS >= 100 else ", too few of them to tell that rate"
    return (
        f"While at most {FALSE_ALARMS}{SPACE}% of the {count:.0f} targets of users it does not "
        f"know pass for one it does{few}, it names {percent(row.value.mean)} of the known ones "
        f"right{_span(row)}.",
    )


def _control(case: Case) -> tuple[str, ...]:
    row = case.whole.get("control_excess")
    if row is not None:
        low, high = (percent(row.references[f"null {end} %"]) for end in ("2.5", "97.5"))
        within = row.references["null 2.5 %"] <= row.value.mean <= row.references["null 97.5 %"]
        return (
            "Where the clients' examples were dealt anew among all of them, its average "
            f"precision is {percent(row.value.mean)}, {'inside' if within else 'outside'} the "
            f"{low} to {high} of devices whose identities are swapped by chance.",
        )
    if CONTROL in case.row.references:
        score, value = measure(case.row.score), case.row.references[CONTROL]
        return (
            "Where the clients' examples were dealt anew among all of them, the same figure is "
            f"{score.tell(value)}.",
        )
    return ("No control ran beside it, with examples dealt anew among all clients.",)


def _gain(case: Case) -> tuple[str, ...]:
    row = case.whole.get("gain_over_published")
    if row is None:
        return ()
    (base,) = row.references
    said = measure(row.score).tell(row.value.mean)
    return (f"User by user, that is {said} above {shown(base)}{_span(row)}.",)


def _span(row: Row) -> str:
    span = measure(row.score).span(row.value)
    return "" if span == NO_FIGURE else f" (95{SPACE}% interval {span})"
