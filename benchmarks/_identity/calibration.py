"""Calibration of the stated probability that a sender is unknown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from overheard.findings.finding import Finding

EDGES = (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)
"""Edges of the bins of stated probabilities."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Targets with similar stated probabilities.

    Args:
        targets: number of targets.
        stated: mean stated probability of being unknown.
        true: fraction of targets that are unknown.

    """

    targets: int
    stated: float
    true: float


def calibration(findings: Iterable[Finding]) -> tuple[Bin, ...]:
    """Bin stated and true probabilities of being unknown, without controls."""
    pairs = [
        (finding.none_of_them, all(score.name != "top1" for score in finding.scores))
        for finding in findings
        if finding.none_of_them is not None and not finding.cell.is_control
    ]
    if not pairs:
        return ()
    stated = np.array([probability for probability, _ in pairs], dtype=float)
    true = np.array([is_unknown for _, is_unknown in pairs], dtype=float)
    index = np.digitize(stated, EDGES[1:-1])
    bins = [index == number for number in range(len(EDGES) - 1)]
    return tuple(
        Bin(int(inside.sum()), float(stated[inside].mean()), float(true[inside].mean()))
        for inside in bins
        if inside.any()
    )


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the mean difference of stated and true probabilities, weighted by targets."""
    total = sum(group.targets for group in bins)
    return sum(group.targets * abs(group.stated - group.true) for group in bins) / total
