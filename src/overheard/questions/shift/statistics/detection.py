"""What only many runs with a shift, each beside its control, tell of an attack."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.core.claims import Timeline
from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.findings.finding import Cell, Finding
from overheard.findings.row import Row, place_of
from overheard.questions.shift.statistics.pairs import Pair, pairs, peaks, told
from overheard.questions.shift.statistics.ranks import auc, power
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact import mean_time_between, middle, proportion

POWER = (5, 1)
"""Percent of false alarms at which the power is told."""

NO_GUESS: Mapping[str, float] = MappingProxyType({})


def detection_rows(findings: Sequence[Finding], seed: Seed) -> tuple[Row, ...]:
    """Rows for each arm, observers, attack, question and rounds with runs of both kinds.

    A run counts by its peak, the largest statistic of its timeline.

    - `auc`: the chance that a run with a shift has a higher peak than a control, ties half.
      Blind: 0.5. `auc_told`: the same with the statistic in the true round (in the control,
      the round of its exchange), as one reads it who is told when; so the paper evaluates.
    - `power_at_5`, `power_at_1`: the share of shifts whose peak lies above all but 5 % or 1 %
      of the controls' peaks; left out where there are too few controls, 19 and 99 at least.
      Blind: 0.05 and 0.01.

    Where the attack states when it raises an alarm, in every run:

    - `detection_rate`: the share of shifts with an alarm in the true round or later, none
      before. Blind: the mean stated rate of false alarms.
    - `false_alarm_rate`: the share of controls with any alarm, beside the stated rate.
    - `rounds_between_false_alarms`: in controls, rounds watched, up to the first alarm of
      each, over alarms.
    - `median_delay`: rounds from the shift to the alarm, of the shifts detected.

    The intervals of the last four take each target of a run for a trial of its own: exact
    where a run has one target, too narrow where several share a model.
    """
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.timeline is not None:
            groups[place_of(finding.cell)].append(finding)
    return tuple(row for members in groups.values() for row in _rows(members, seed))


def _rows(members: Sequence[Finding], seed: Seed) -> list[Row]:
    found = pairs(members)
    if not found:
        return []
    return [
        *_by_rank(_Place(members[0].cell, found), seed),
        *_by_alarm(_Place(members[0].cell, found)),
    ]


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """Where rows belong, and the pairs that they sum up."""

    cell: Cell
    found: tuple[Pair, ...]

    def row(
        self,
        score: str,
        better: Better,
        value: Estimate,
        blinds: Mapping[str, float] = NO_GUESS,
        references: Mapping[str, float] = NO_GUESS,
    ) -> Row:
        blind = max(blinds.values()) if blinds else None
        return Row(
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
            gain=None if blind is None else _less(value, blind),
            targets=len({pair.target for pair in self.found}),
            seeds=len({pair.seed for pair in self.found}),
        )


def _less(value: Estimate, guess: float) -> Estimate:
    return Estimate(
        value.mean - guess,
        None if value.low is None else value.low - guess,
        None if value.high is None else value.high - guess,
    )


def _by_rank(place: _Place, seed: Seed) -> list[Row]:
    draws = seed.child("pairs", place.cell.arm, place.cell.attack)
    highest, at_round = peaks(place.found), told(place.found)
    coin = {"a coin": 0.5}
    rows = [
        place.row("auc", "higher", auc(highest, draws), coin),
        place.row("auc_told", "higher", auc(at_round, draws), coin),
    ]
    for percent in POWER:
        value = power(highest, percent, draws)
        if value is not None:
            blind = {"an alarm at random": percent / 100}
            rows.append(place.row(f"power_at_{percent}", "higher", value, blind))
    return rows


def _by_alarm(place: _Place) -> list[Row]:
    if not all(pair.states_alarms for pair in place.found):
        return []
    delays = [
        float(pair.shifted.alarm - pair.since)
        for pair in place.found
        if pair.shifted.alarm is not None and pair.shifted.alarm >= pair.since
    ]
    controls = [pair.control for pair in place.found]
    false = sum(control.alarm is not None for control in controls)
    count, stated = len(place.found), _stated(place.found)
    rows = [
        place.row(
            "detection_rate",
            "higher",
            proportion(float(len(delays)), count),
            {} if stated is None else {"an alarm at random": stated},
        ),
        place.row(
            "false_alarm_rate",
            "lower",
            proportion(float(false), count),
            references={} if stated is None else {"stated": stated},
        ),
    ]
    watched = sum(map(_watched, controls))
    if watched:
        rows.append(
            place.row(
                "rounds_between_false_alarms",
                "higher",
                mean_time_between(false, float(watched)),
            )
        )
    if delays:
        rows.append(place.row("median_delay", "lower", middle(delays)))
    return rows


def _stated(found: Sequence[Pair]) -> float | None:
    rates = [
        rate
        for pair in found
        for rate in (pair.shifted.false_alarm_rate, pair.control.false_alarm_rate)
    ]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if len(known) == len(rates) else None


def _watched(control: Timeline) -> int:
    """How many rounds went by until the first alarm, that of the alarm included."""
    if control.alarm is None:
        return len(control.rounds)
    return control.rounds.index(control.alarm) + 1
