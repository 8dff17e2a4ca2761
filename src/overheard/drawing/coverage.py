"""Tells how far the intervals that attacks state can be trusted."""

from overheard.core.claims import INTERVAL_LEVEL
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.exposures import Exposure
from overheard.findings.figures import SPACE, Measure, percent
from overheard.findings.names import shown, told_apart

DISTRUSTED = 0.8
"""Intervals that hold the truth less often than this are called untrustworthy: a tenth below
what they say, more than chance takes off where a hundred numbers were bounded."""

LEVEL = f"{100 * INTERVAL_LEVEL:.0f}{SPACE}%"


def coverage_words(exposure: Exposure, score: str, told: Measure, what: str) -> tuple[str, ...]:
    """How often the intervals of each attack that states some held the true number.

    Args:
        exposure: of attacks that may state intervals.
        score: the name of the share of intervals that hold.
        told: how that is told.
        what: each of them is an interval of, such as "share".

    """
    names = told_apart([case.label for case in exposure.cases])
    sentences = []
    for case in exposure.cases:
        row = case.whole.get(score)
        if row is None:
            continue
        said = (
            f"The {LEVEL} intervals of {shown(names[case.label])} held the true {what} for "
            f"{percent(row.value.mean)} of the {what}s{bracketed_interval(row, told)}"
        )
        if row.value.mean < DISTRUSTED:
            said += ": they are too narrow here, and cannot be trusted"
        sentences.append(f"{said}.")
    return tuple(sentences)
