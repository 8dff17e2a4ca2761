"""Runs in which a target's data shifted, with their controls."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float, Int

from overheard.core.claims import Timeline
from overheard.core.parties import Party
from overheard.findings.control_draws import ControlDraws
from overheard.findings.finding import Finding

CONTROL_ORDER: tuple[ControlDraws, ...] = ("natural", "", "exact")
"""The kinds of controls; the headline is against the first of these that was run."""


@dataclass(frozen=True, slots=True)
class RunPair:
    """The evidence of one attack about one target and seed, with and without the shift.

    Args:
        seed: the seed of both runs.
        target: the target of both claims.
        since: the first round with new data; in the control, new data of the same kind.
        shifted: the evidence in the run with the shift.
        controls: the evidence in each control run of one kind, one or more.

    """

    seed: int
    target: Party
    since: int
    shifted: Timeline
    controls: tuple[Timeline, ...]


def headline_draws(findings: Sequence[Finding]) -> ControlDraws:
    """Return the kind of the headline's controls: natural ones if there are any."""
    kinds = {finding.cell.control for finding in findings if finding.cell.is_control}
    return next((kind for kind in CONTROL_ORDER if kind in kinds), "")


def pair_runs(
    findings: Sequence[Finding], draws: ControlDraws | None = None
) -> tuple[RunPair, ...]:
    """Pair the findings of one attack in one arm; findings without a partner are left out.

    A target of a planned run whose data did not shift is also left out.

    Args:
        findings: the findings of planned runs and controls.
        draws: the kind of controls to pair with; None = those of the headline.

    """
    kind = headline_draws(findings) if draws is None else draws
    controls = defaultdict[tuple[int, Party], list[Timeline]](list)
    for finding in findings:
        is_wanted = finding.cell.is_control and finding.cell.control == kind
        if is_wanted and finding.claimed.timeline is not None:
            controls[finding.cell.seed, finding.target].append(finding.claimed.timeline)
    run_pairs = []
    for finding in findings:
        cell, since, shifted = finding.cell, finding.true_since, finding.claimed.timeline
        own = controls.get((cell.seed, finding.target))
        if cell.is_control or since is None or shifted is None or own is None:
            continue
        run_pairs.append(RunPair(cell.seed, finding.target, since, shifted, tuple(own)))
    return tuple(run_pairs)


@dataclass(frozen=True, slots=True)
class PairedEvidence:
    """One number per run; larger = more evidence of a shift.

    Args:
        shifted: the number of each run with a shift.
        control: the number of each control run.
        clusters: the cluster of each run with a shift. Runs of one seed share a model and are
            resampled together, with their controls; with only one seed, each run with a shift
            is a cluster with its controls.
        control_clusters: the cluster of each control run.

    """

    shifted: Float[np.ndarray, " pairs"]
    control: Float[np.ndarray, " controls"]
    clusters: Int[np.ndarray, " pairs"]
    control_clusters: Int[np.ndarray, " controls"]

    @property
    def cluster_count(self) -> int:
        """Return the number of clusters."""
        return int(self.clusters.max()) + 1


def peak_evidence(run_pairs: Sequence[RunPair]) -> PairedEvidence:
    """Return the largest statistic of each run: the evidence if the round is unknown."""
    return _paired_evidence(
        run_pairs,
        [peak_of(pair.shifted) for pair in run_pairs],
        [[peak_of(control) for control in pair.controls] for pair in run_pairs],
    )


def evidence_at_shift(run_pairs: Sequence[RunPair]) -> PairedEvidence:
    """Return the statistic in the true round, or the next round with one; also for controls."""
    return _paired_evidence(
        run_pairs,
        [_statistic_from(pair.shifted, pair.since) for pair in run_pairs],
        [
            [_statistic_from(control, pair.since) for control in pair.controls]
            for pair in run_pairs
        ],
    )


def _paired_evidence(
    run_pairs: Sequence[RunPair],
    shifted: Sequence[float],
    control: Sequence[Sequence[float]],
) -> PairedEvidence:
    seeds = np.array([pair.seed for pair in run_pairs])
    distinct, clusters = np.unique(seeds, return_inverse=True)
    if len(distinct) == 1:
        clusters = np.arange(len(run_pairs))
    clusters = clusters.astype(np.int64)
    return PairedEvidence(
        np.array(shifted),
        np.concatenate([np.array(values) for values in control]),
        clusters,
        np.repeat(clusters, [len(values) for values in control]),
    )


def peak_of(timeline: Timeline) -> float:
    """Return the largest statistic; -inf without one, which ties with itself."""
    return max(timeline.statistic, default=-inf)


def _statistic_from(timeline: Timeline, number: int) -> float:
    by_round = zip(timeline.rounds, timeline.statistic, strict=True)
    return next((value for current, value in by_round if current >= number), -inf)
