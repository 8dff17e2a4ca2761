"""How far the stated chance that a sender is unknown can be trusted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from overheard.findings.finding import Finding

EDGES = (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)
"""Of the stated chances that are looked at together."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Targets of which about the same was stated.

    Args:
        targets: how many.
        stated: mean chance to be unknown.
        true: share of them that is.

    """

    targets: int
    stated: float
    true: float


def calibration(findings: Iterable[Finding]) -> tuple[Bin, ...]:
    """Stated against true, from small to large chances; controls left out."""
    held = [
        (one.none_of_them, all(score.name != "top1" for score in one.scores))
        for one in findings
        if one.none_of_them is not None and not one.cell.is_control
    ]
    if not held:
        return ()
    stated = np.array([chance for chance, _ in held], dtype=float)
    true = np.array([unknown for _, unknown in held], dtype=float)
    place = np.digitize(stated, EDGES[1:-1])
    bins = [place == number for number in range(len(EDGES) - 1)]
    return tuple(
        Bin(int(those.sum()), float(stated[those].mean()), float(true[those].mean()))
        for those in bins
        if those.any()
    )


def calibration_error(bins: Sequence[Bin]) -> float:
    """The mean distance of stated and true, every target weighing alike."""
    total = sum(one.targets for one in bins)
    return sum(one.targets * abs(one.stated - one.true) for one in bins) / total
