"""Rows of results on shift detection, from runs with a shift and their control runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.core.claims import Timeline
from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.findings.finding import Cell, Finding
from overheard.findings.score_row import ScoreRow, row_group
from overheard.questions.shift.statistics.pairs import (
    RunPair,
    evidence_at_shift,
    pair_runs,
    peak_evidence,
)
from overheard.questions.shift.statistics.ranks import estimate_auc, estimate_power
from overheard.statistics.estimate import Estimate, convert_estimate
from overheard.statistics.exact_intervals import (
    estimate_mean_time_between,
    estimate_median,
    estimate_proportion,
)

POWER_PERCENTS = (5, 1)
"""Percentages of false alarms at which the power is reported."""

NO_REFERENCES: Mapping[str, float] = MappingProxyType({})


def detection_rows(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return rows for each arm, observers, attack, question and rounds with both kinds of runs.

    A run counts by its peak, the largest statistic of its timeline.

    - `estimate_auc`: the probability that a run with a shift has a higher peak than a control,
      ties count half. Uninformed guess: 0.5. `auc_told`: the same with the statistic in the
      true round (in the control, the round of its exchange), as if the round were known; this
      is the paper's evaluation.
    - `power_at_5`, `power_at_1`: the share of shifts whose peak is above all but 5 % or 1 % of
      the controls' peaks; omitted with fewer than 19 or 99 controls. Uninformed guess: 0.05 and
      0.01.

    If the attack states a threshold in every run:

    - `detection_rate`: the share of shifts with an alarm in the true round or later, none
      before. Uninformed guess: the mean stated false alarm rate.
    - `false_alarm_rate`: the share of controls with any alarm; the stated rate is a reference.
    - `rounds_between_false_alarms`: rounds observed in controls, up to the first alarm of each,
      divided by the number of alarms.
    - `median_delay`: rounds from the shift to the alarm, over detected shifts.

    The intervals of the last four treat each target of a run as an independent trial: exact if
    a run has one target, too narrow if several targets share a model.
    """
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.timeline is not None:
            groups[row_group(finding.cell)].append(finding)
    return tuple(row for members in groups.values() for row in _rows(members, seed))


def _rows(members: Sequence[Finding], seed: Seed) -> list[ScoreRow]:
    run_pairs = pair_runs(members)
    if not run_pairs:
        return []
    place = _PairedCell(members[0].cell, run_pairs)
    return [*_rank_rows(place, seed), *_alarm_rows(place)]


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
        blinds: Mapping[str, float] = NO_REFERENCES,
        references: Mapping[str, float] = NO_REFERENCES,
    ) -> ScoreRow:
        blind = max(blinds.values()) if blinds else None
        return ScoreRow(
            arm=self.cell.arm,
            observers=self.cell.observers,
            attack=self.cell.attack,
            question=self.cell.question,
            rounds=self.cell.rounds,
            score=score,
            better=better,
            value=value,
            blinds=blinds,
            references=references,
            blind=blind,
            gain=None if blind is None else convert_estimate(value, 1.0, -blind),
            targets=len({pair.target for pair in self.run_pairs}),
            seeds=len({pair.seed for pair in self.run_pairs}),
        )


def _rank_rows(place: _PairedCell, seed: Seed) -> list[ScoreRow]:
    draws = seed.child("pairs", place.cell.arm, place.cell.attack)
    highest, at_round = peak_evidence(place.run_pairs), evidence_at_shift(place.run_pairs)
    chance = {"a coin": 0.5}
    rows = [
        place.row("auc", "higher", estimate_auc(highest, draws), chance),
        place.row("auc_told", "higher", estimate_auc(at_round, draws), chance),
    ]
    for percent in POWER_PERCENTS:
        value = estimate_power(highest, percent, draws)
        if value is not None:
            blind = {"an alarm at random": percent / 100}
            rows.append(place.row(f"power_at_{percent}", "higher", value, blind))
    return rows


def _alarm_rows(place: _PairedCell) -> list[ScoreRow]:
    if not all(pair.states_alarms for pair in place.run_pairs):
        return []
    delays = [
        float(pair.shifted.alarm - pair.since)
        for pair in place.run_pairs
        if pair.shifted.alarm is not None and pair.shifted.alarm >= pair.since
    ]
    controls = [pair.control for pair in place.run_pairs]
    false_alarms = sum(control.alarm is not None for control in controls)
    count, stated = len(place.run_pairs), _mean_stated_rate(place.run_pairs)
    rows = [
        place.row(
            "detection_rate",
            "higher",
            estimate_proportion(float(len(delays)), count),
            {} if stated is None else {"an alarm at random": stated},
        ),
        place.row(
            "false_alarm_rate",
            "lower",
            estimate_proportion(float(false_alarms), count),
            references={} if stated is None else {"stated": stated},
        ),
    ]
    watched = sum(map(_rounds_watched, controls))
    if watched:
        rows.append(
            place.row(
                "rounds_between_false_alarms",
                "higher",
                estimate_mean_time_between(false_alarms, float(watched)),
            )
        )
    if delays:
        rows.append(place.row("median_delay", "lower", estimate_median(delays)))
    return rows


def _mean_stated_rate(run_pairs: Sequence[RunPair]) -> float | None:
    rates = [
        rate
        for pair in run_pairs
        for rate in (pair.shifted.false_alarm_rate, pair.control.false_alarm_rate)
    ]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if len(known) == len(rates) else None


def _rounds_watched(control: Timeline) -> int:
    """Return the number of rounds up to and including that of the first alarm."""
    if control.alarm is None:
        return len(control.rounds)
    return control.rounds.index(control.alarm) + 1
