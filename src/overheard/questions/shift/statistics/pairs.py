"""Pairs of a run in which a target's data shifted and its control run."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float, Int

from overheard.core.claims import Timeline
from overheard.core.parties import Party
from overheard.findings.finding import Finding


@dataclass(frozen=True, slots=True)
class RunPair:
    """The evidence of one attack about one target and seed, with and without the shift.

    Args:
        seed: the seed of both runs.
        target: the target of both claims.
        since: the first round with new data; in the control, new data of the same kind.
        shifted: the evidence in the run with the shift.
        control: the evidence in the control run.

    """

    seed: int
    target: Party
    since: int
    shifted: Timeline
    control: Timeline

    @property
    def states_alarms(self) -> bool:
        """Return whether the attack states a threshold in both runs."""
        return self.shifted.threshold is not None and self.control.threshold is not None


def pair_runs(findings: Sequence[Finding]) -> tuple[RunPair, ...]:
    """Pair the findings of one attack in one arm; findings without a partner are left out.

    A target of a planned run whose data did not shift is also left out.
    """
    controls = {
        (finding.cell.seed, finding.target): finding.timeline
        for finding in findings
        if finding.cell.is_control
    }
    run_pairs = []
    for finding in findings:
        cell, since, shifted = finding.cell, finding.true_since, finding.timeline
        control = controls.get((cell.seed, finding.target))
        if cell.is_control or since is None or shifted is None or control is None:
            continue
        run_pairs.append(RunPair(cell.seed, finding.target, since, shifted, control))
    return tuple(run_pairs)


@dataclass(frozen=True, slots=True)
class PairedEvidence:
    """One number per run; larger = more evidence of a shift.

    Args:
        shifted: the number of each run with a shift.
        control: the number of its control run.
        clusters: the cluster of each pair. Pairs of one seed share a model and are resampled
            together; with only one seed, each pair is a cluster.

    """

    shifted: Float[np.ndarray, " pairs"]
    control: Float[np.ndarray, " pairs"]
    clusters: Int[np.ndarray, " pairs"]

    @property
    def cluster_count(self) -> int:
        """Return the number of clusters."""
        return int(self.clusters.max()) + 1


def peak_evidence(run_pairs: Sequence[RunPair]) -> PairedEvidence:
    """Return the largest statistic of each run: the evidence if the round is unknown."""
    return _paired_evidence(
        run_pairs,
        [_peak(pair.shifted) for pair in run_pairs],
        [_peak(pair.control) for pair in run_pairs],
    )


def evidence_at_shift(run_pairs: Sequence[RunPair]) -> PairedEvidence:
    """Return the statistic in the true round, or the next round with one; also for controls."""
    return _paired_evidence(
        run_pairs,
        [_statistic_from(pair.shifted, pair.since) for pair in run_pairs],
        [_statistic_from(pair.control, pair.since) for pair in run_pairs],
    )


def _paired_evidence(
    run_pairs: Sequence[RunPair], shifted: Sequence[float], control: Sequence[float]
) -> PairedEvidence:
    seeds = np.array([pair.seed for pair in run_pairs])
    distinct, clusters = np.unique(seeds, return_inverse=True)
    if len(distinct) == 1:
        clusters = np.arange(len(run_pairs))
    return PairedEvidence(np.array(shifted), np.array(control), clusters.astype(np.int64))


def _peak(timeline: Timeline) -> float:
    # Without a statistic there is no evidence: -inf is below all others and ties with itself.
    return max(timeline.statistic, default=-inf)


def _statistic_from(timeline: Timeline, number: int) -> float:
    by_round = zip(timeline.rounds, timeline.statistic, strict=True)
    return next((value for current, value in by_round if current >= number), -inf)
