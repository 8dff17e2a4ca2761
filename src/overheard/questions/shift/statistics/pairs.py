"""Sets each run in which a target's data shifted beside its control."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float, Int

from overheard.core.claims import Timeline
from overheard.core.parties import Party
from overheard.findings.finding import Finding


@dataclass(frozen=True, slots=True)
class Pair:
    """What one attack said of one target under one seed, with the shift and without.

    Args:
        seed: of both runs.
        target: of both claims.
        since: the first round on new data; of fresh but like data in the control.
        shifted: the evidence where the data shifted.
        control: the evidence where they did not.

    """

    seed: int
    target: Party
    since: int
    shifted: Timeline
    control: Timeline

    @property
    def states_alarms(self) -> bool:
        """Whether the attack said, in both runs, when it raises an alarm."""
        return self.shifted.threshold is not None and self.control.threshold is not None


def pairs(findings: Sequence[Finding]) -> tuple[Pair, ...]:
    """Pair the findings of one attack in one arm; those without a partner are left out.

    A target of a planned run whose data did not shift makes no pair.
    """
    controls = {
        (finding.cell.seed, finding.target): finding.timeline
        for finding in findings
        if finding.cell.is_control
    }
    found = []
    for finding in findings:
        cell, since, shifted = finding.cell, finding.true_since, finding.timeline
        control = controls.get((cell.seed, finding.target))
        if cell.is_control or since is None or shifted is None or control is None:
            continue
        found.append(Pair(cell.seed, finding.target, since, shifted, control))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number a run, larger where there is more evidence of a shift.

    Args:
        shifted: of each run with the shift.
        control: of its control.
        clusters: which pairs are drawn together: those of one seed, whose targets share a
            model; where there is but one seed, each for itself.

    """

    shifted: Float[np.ndarray, " pairs"]
    control: Float[np.ndarray, " pairs"]
    clusters: Int[np.ndarray, " pairs"]

    @property
    def independent(self) -> int:
        """How many clusters there are."""
        return int(self.clusters.max()) + 1


def peaks(found: Sequence[Pair]) -> Evidence:
    """The largest statistic of each run: what one has who is not told the round."""
    return _evidence(
        found, [_peak(pair.shifted) for pair in found], [_peak(pair.control) for pair in found]
    )


def told(found: Sequence[Pair]) -> Evidence:
    """The statistic in the true round, or the next that has one; the same in the control."""
    return _evidence(
        found,
        [_at(pair.shifted, pair.since) for pair in found],
        [_at(pair.control, pair.since) for pair in found],
    )


def _evidence(
    found: Sequence[Pair], shifted: Sequence[float], control: Sequence[float]
) -> Evidence:
    seeds = np.array([pair.seed for pair in found])
    names, clusters = np.unique(seeds, return_inverse=True)
    if len(names) == 1:
        clusters = np.arange(len(found))
    return Evidence(np.array(shifted), np.array(control), clusters.astype(np.int64))


def _peak(timeline: Timeline) -> float:
    # Who has no statistic has no evidence: less than any other, and as much as his like.
    return max(timeline.statistic, default=-inf)


def _at(timeline: Timeline, number: int) -> float:
    later = zip(timeline.rounds, timeline.statistic, strict=True)
    return next((value for place, value in later if place >= number), -inf)
