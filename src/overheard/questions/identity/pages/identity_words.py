"""Tells in plain sentences how well users are recognised, and what that is worth."""

from overheard.drawing.people import control_words, pair_words
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.exposures import Case, Exposure
from overheard.findings.figures import SPACE, digits, percent
from overheard.findings.names import shown
from overheard.findings.row import Row
from overheard.questions.identity.measures import MEASURES
from overheard.questions.identity.statistics.identity_rows import FALSE_ALARMS


def identity_words(exposure: Exposure) -> tuple[str, ...]:
    """What the best attack is worth over all its targets."""
    case = exposure.cases[0]
    return (
        *_ranked(case),
        *pair_words(case),
        *_strangers(case),
        _control(case),
        *_gain(case, exposure),
    )


def _ranked(case: Case) -> tuple[str, ...]:
    row, times = case.whole.get("mean_average_precision"), case.whole.get("times_chance")
    if row is None or times is None:
        return ()
    return (
        f"Looking for one user among all that was sent, it finds what is that user's with an "
        f"average precision of {percent(row.value.mean)}{_interval(row)}; a random order gets "
        f"{percent(row.blind)}, so that is {digits(times.value.mean)} times chance.",
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
        f"right{_interval(row)}.",
    )


def _control(case: Case) -> str:
    row = case.whole.get("control_excess")
    if row is None:
        return control_words(case, MEASURES[case.headline])
    low, high = (percent(row.references[f"null {end} %"]) for end in ("2.5", "97.5"))
    within = row.references["null 2.5 %"] <= row.value.mean <= row.references["null 97.5 %"]
    return (
        "Where the clients' examples were dealt anew among all of them, its average "
        f"precision is {percent(row.value.mean)}, {'inside' if within else 'outside'} the "
        f"{low} to {high} of devices whose identities are swapped by chance."
    )


def _gain(case: Case, exposure: Exposure) -> tuple[str, ...]:
    row = case.whole.get("gain_over_published")
    if row is None:
        return ()
    (base,) = row.references
    said, label = MEASURES[row.score].tell(row.value.mean), shown(exposure.labels[base])
    return (f"User by user, that is {said} above {label}{_interval(row)}.",)


def _interval(row: Row) -> str:
    return bracketed_interval(row, MEASURES[row.score])
