"""Rows of results on shift detection, from runs with a shift and their control runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.core.claims import Timeline
from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.findings.finding import Cell, Finding
from overheard.findings.score_row import ScoreRow, row_group
from overheard.questions.shift.statistics.pairs import (
    PairedEvidence,
    RunPair,
    evidence_at_shift,
    headline_draws,
    pair_runs,
    peak_evidence,
)
from overheard.statistics.estimate import (
    BOOTSTRAP_DRAWS,
    CONFIDENCE_LEVEL,
    Estimate,
    convert_estimate,
)
from overheard.statistics.exact_intervals import (
    estimate_auc_of_trials,
    estimate_mean_time_between,
    estimate_median,
    estimate_proportion,
)

POWER_PERCENTS = (5, 1)
"""Percentages of false alarms at which the power is reported."""

CHANCE: Mapping[str, float] = MappingProxyType({"a coin": 0.5})

NO_REFERENCES: Mapping[str, float] = MappingProxyType({})


def detection_rows(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return rows for each arm, observers, attack, question and rounds with both kinds of runs.

    A run counts by its peak, the largest statistic of its timeline. Controls are those with
    natural draws; the exact ones only if there are no others.

    - `estimate_auc`: the probability that a run with a shift has a higher peak than a control,
      ties count half. Uninformed guess: 0.5. `auc_told`: the same with the statistic in the
      true round (in the control, the round of its exchange), as if the round were known; this
      is the paper's evaluation.
    - `power_at_5`, `power_at_1`: the share of shifts whose peak is above all but 5 % or 1 % of
      the controls' peaks; omitted with fewer than 19 or 99 controls. Uninformed guess: 0.05 and
      0.01.

    If the attack states a threshold, over the runs in which it does:

    - `detection_rate`: the share of shifts with an alarm in the true round or later, none
      before. Uninformed guess: the mean stated false alarm rate.
    - `false_alarm_rate`: the share of controls with any alarm; the stated rate is a reference.
    - `rounds_between_false_alarms`: rounds observed in controls, up to the first alarm of each,
      divided by the number of alarms.
    - `median_delay`: rounds from the shift to the alarm, over detected shifts. The alarm of a
      round rests on the rounds up to it alone.
    - `not_calibrated`: the share of all runs in which the attack could not keep its stated rate
      and gave no alarm; only for attacks that state a rate.

    Against exact controls, if there are natural ones too: `auc_exact`, `power_at_5_exact` and
    `false_alarm_rate_exact`.

    The intervals of rates and delays treat each target of a run as an independent trial: exact
    if a run has one target, too narrow if several targets share a model.
    """
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.claimed.timeline is not None:
            groups[row_group(finding.cell)].append(finding)
    return tuple(row for members in groups.values() for row in _rows(members, seed))


def _rows(members: Sequence[Finding], seed: Seed) -> list[ScoreRow]:
    headline = headline_draws(members)
    run_pairs = pair_runs(members, headline)
    if not run_pairs:
        return []
    place = _PairedCell(members[0].cell, run_pairs)
    rows = [*_rank_rows(place, seed), *_alarm_rows(place)]
    exact_pairs = pair_runs(members, "exact") if headline != "exact" else ()
    if exact_pairs:
        rows += _exact_rows(_PairedCell(members[0].cell, exact_pairs), seed)
    return rows


@final
@dataclass(frozen=True, slots=True)
class _PairedCell:
    """The cell of some rows, and the pairs of runs that they summarise."""

    cell: Cell
    run_pairs: tuple[RunPair, ...]

    def row(
        self,
        score: str,
        better: Better,
        value: Estimate,
        uninformed: Mapping[str, float] = NO_REFERENCES,
        references: Mapping[str, float] = NO_REFERENCES,
    ) -> ScoreRow:
        best = max(uninformed.values()) if uninformed else None
        return ScoreRow(
            arm=self.cell.arm,
            observers=self.cell.observers,
            attack=self.cell.attack,
            question=self.cell.question,
            rounds=self.cell.rounds,
            score=score,
            better=better,
            value=value,
            uninformed=uninformed,
            references=references,
            best_uninformed=best,
            gain=None if best is None else convert_estimate(value, 1.0, -best),
            targets=len({pair.target for pair in self.run_pairs}),
            seeds=len({pair.seed for pair in self.run_pairs}),
        )

    @property
    def controls(self) -> tuple[Timeline, ...]:
        """The evidence of all controls."""
        return tuple(control for pair in self.run_pairs for control in pair.controls)


def _rank_rows(place: _PairedCell, seed: Seed) -> list[ScoreRow]:
    draws = seed.child("pairs", place.cell.arm, place.cell.attack)
    highest, at_round = peak_evidence(place.run_pairs), evidence_at_shift(place.run_pairs)
    rows = [
        place.row("auc", "higher", estimate_auc(highest, draws), CHANCE),
        place.row("auc_told", "higher", estimate_auc(at_round, draws), CHANCE),
    ]
    for percent in POWER_PERCENTS:
        rows += _power_rows(place, highest, percent, f"power_at_{percent}", draws)
    return rows


def _exact_rows(place: _PairedCell, seed: Seed) -> list[ScoreRow]:
    """Return the rows against exact controls."""
    draws = seed.child("pairs", place.cell.arm, place.cell.attack)
    highest = peak_evidence(place.run_pairs)
    return [
        place.row("auc_exact", "higher", estimate_auc(highest, draws), CHANCE),
        *_power_rows(place, highest, 5, "power_at_5_exact", draws),
        *_false_alarm_rows(place, "false_alarm_rate_exact"),
    ]


def _power_rows(
    place: _PairedCell, highest: PairedEvidence, percent: int, score: str, draws: Seed
) -> list[ScoreRow]:
    """Return the row of the power at this percentage; none if there are too few controls."""
    value = estimate_power(highest, percent, draws)
    if value is None:
        return []
    return [place.row(score, "higher", value, {"an alarm at random": percent / 100})]


def _alarm_rows(place: _PairedCell) -> list[ScoreRow]:
    """Return the rows of an attack with alarms, over the runs with a threshold."""
    rows = _false_alarm_rows(place, "false_alarm_rate")
    alarmed = [pair for pair in place.run_pairs if pair.shifted.threshold is not None]
    if rows and alarmed:
        rows = [*_detection_rows(place, alarmed), *rows, *_waiting_rows(place)]
    timelines = [*(pair.shifted for pair in place.run_pairs), *place.controls]
    if any(one.false_alarm_rate is not None for one in timelines):
        silent = sum(one.is_uncalibrated for one in timelines)
        value = estimate_proportion(float(silent), len(timelines))
        rows.append(place.row("not_calibrated", "lower", value))
    return rows


def _detection_rows(place: _PairedCell, alarmed: Sequence[RunPair]) -> list[ScoreRow]:
    """Return the share of shifts that are detected, and how late."""
    delays = [
        float(pair.shifted.alarm - pair.since)
        for pair in alarmed
        if pair.shifted.alarm is not None and pair.shifted.alarm >= pair.since
    ]
    stated = _mean_stated_rate([pair.shifted for pair in alarmed])
    uninformed = {} if stated is None else {"an alarm at random": stated}
    detected = estimate_proportion(float(len(delays)), len(alarmed))
    rows = [place.row("detection_rate", "higher", detected, uninformed)]
    if delays:
        rows.append(place.row("median_delay", "lower", estimate_median(delays)))
    return rows


def _false_alarm_rows(place: _PairedCell, score: str) -> list[ScoreRow]:
    """Return the share of controls with an alarm; none if no threshold is stated."""
    controls = [control for control in place.controls if control.threshold is not None]
    if not controls:
        return []
    stated = _mean_stated_rate(controls)
    alarms = sum(control.alarm is not None for control in controls)
    value = estimate_proportion(float(alarms), len(controls))
    references = {} if stated is None else {"stated": stated}
    return [place.row(score, "lower", value, references=references)]


def _waiting_rows(place: _PairedCell) -> list[ScoreRow]:
    """Return the mean time between false alarms."""
    controls = [control for control in place.controls if control.threshold is not None]
    alarms = sum(control.alarm is not None for control in controls)
    watched = sum(map(_rounds_watched, controls))
    if not watched:
        return []
    value = estimate_mean_time_between(alarms, float(watched))
    return [place.row("rounds_between_false_alarms", "higher", value)]


def _mean_stated_rate(timelines: Sequence[Timeline]) -> float | None:
    rates = [one.false_alarm_rate for one in timelines if one.false_alarm_rate is not None]
    return sum(rates) / len(rates) if len(rates) == len(timelines) else None


def _rounds_watched(control: Timeline) -> int:
    """Return the number of rounds up to and including that of the first alarm."""
    if control.alarm is None:
        return len(control.rounds)
    return control.rounds.index(control.alarm) + 1


def estimate_auc(evidence: PairedEvidence, seed: Seed) -> Estimate:
    """Estimate the probability that a shift has more evidence than a control, ties half.

    It is over all pairs of a run with a shift and any control run; 0.5 without information.

    Each end of the interval is the wider of two. The first is the bootstrap over clusters,
    with a run and its control resampled together. The second is the score interval with the
    variance of Hanley and McNeil 1982, solved as in Newcombe 2006 (method 5), with one run per
    cluster. The bootstrap
    alone has zero width if all pairs are ranked correctly, however few they are.
    """
    clusters = evidence.cluster_count
    wins = np.zeros((clusters, clusters))
    for value, cluster in zip(evidence.shifted, evidence.clusters, strict=True):
        is_above, is_tied = value > evidence.control, value == evidence.control
        wins_of_value = is_above + is_tied / 2  # (controls,)
        wins[cluster] += np.bincount(evidence.control_clusters, wins_of_value, clusters)
    pairs = len(evidence.shifted) * len(evidence.control)
    value = float(wins.sum() / pairs)
    if clusters < 2:
        return Estimate(value, None, None)
    drawn = _draw_clusters(clusters, seed)
    drawn_wins = ((drawn @ wins) * drawn).sum(1)
    drawn_pairs = (drawn @ np.bincount(evidence.clusters)) * (
        drawn @ np.bincount(evidence.control_clusters)
    )
    score = estimate_auc_of_trials(value, clusters, clusters)
    return _wider_interval(value, drawn_wins / drawn_pairs, score.low, score.high)


def estimate_power(evidence: PairedEvidence, percent: int, seed: Seed) -> Estimate | None:
    """Estimate the share of runs with a shift above all but this percentage of controls.

    The threshold is the control of rank ceil((n + 1) (1 - a)) of n, with a = percent / 100. A
    further exchangeable control exceeds it with probability at most a, for any n (order
    statistic of conformal prediction: Vovk et al. 2005). None if n has no such rank: below 19
    controls at 5 percent, below 99 at 1.

    Each end of the interval is the wider of two: the bootstrap over clusters, including the
    threshold, and the exact interval of a proportion with one run per cluster.
    """
    count, clusters = len(evidence.control), evidence.cluster_count
    if _threshold_rank(np.array([count]), percent)[0] > count:
        return None
    (value,) = _power_of_draws(evidence, np.ones((1, clusters), dtype=np.int64), percent)
    if clusters < 2:
        return Estimate(float(value), None, None)
    drawn = _power_of_draws(evidence, _draw_clusters(clusters, seed), percent)
    exact = estimate_proportion(float(value) * clusters, clusters)
    return _wider_interval(float(value), drawn, exact.low, exact.high)


def _threshold_rank(
    counts: Int[np.ndarray, " draws"], percent: int
) -> Int[np.ndarray, " draws"]:
    return -(-(counts + 1) * (100 - percent) // 100)


def _power_of_draws(
    evidence: PairedEvidence, drawn: Int[np.ndarray, "draws clusters"], percent: int
) -> Float[np.ndarray, " draws"]:
    """Return the share above the threshold, with clusters weighted by their draws."""
    order = np.argsort(evidence.control, kind="stable")
    weights = drawn[:, evidence.clusters]  # (draws, pairs)
    running = drawn[:, evidence.control_clusters][:, order].cumsum(1)  # (draws, controls)
    counts = running[:, -1]
    # A draw of small clusters may lack this rank; the highest control is then used.
    rank = np.minimum(_threshold_rank(counts, percent), counts)
    place = (running >= rank[:, None]).argmax(1)
    threshold = evidence.control[order][place]  # (draws,)
    above: Bool[np.ndarray, "draws pairs"] = evidence.shifted[None] > threshold[:, None]
    shares: Float[np.ndarray, " draws"] = (weights * above).sum(1) / weights.sum(1)
    return shares


def _draw_clusters(clusters: int, seed: Seed) -> Int[np.ndarray, "draws clusters"]:
    """Return how often each cluster is drawn in each bootstrap sample."""
    return seed.numpy().multinomial(clusters, np.full(clusters, 1 / clusters), BOOTSTRAP_DRAWS)


def _wider_interval(
    value: float, drawn: Float[np.ndarray, " draws"], low: float | None, high: float | None
) -> Estimate:
    ends = np.quantile(drawn, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2])
    lowest = float(ends[0]) if low is None else min(low, float(ends[0]))
    highest = float(ends[1]) if high is None else max(high, float(ends[1]))
    return Estimate(value, lowest, highest)
