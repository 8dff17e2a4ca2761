"""Tells in plain sentences how well records that were trained on are told from others."""

from overheard.report.exposures import Case
from overheard.report.figures import SPACE, measure, percent
from overheard.scoring.membership import FALSE_POSITIVES


def membership_words(case: Case) -> tuple[str, ...]:
    """What the best attack is worth where it may hardly err; nothing of other questions."""
    found = [
        f"{percent(row.value.mean)} at {100 * rate:g}{SPACE}% false positives (95{SPACE}% "
        f"interval {measure(name).span(row.value)}; guessing {percent(row.blind)})"
        for rate, name in FALSE_POSITIVES
        if (row := case.whole.get(name)) is not None
    ]
    if not found:
        return ()
    return (f"Of the records that were trained on it finds {' and '.join(found)}.",)
