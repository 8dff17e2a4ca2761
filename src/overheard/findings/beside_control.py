"""Findings about the person behind a target, each beside those of the control."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.findings.figures import SPACE, Measure
from overheard.findings.finding import Finding
from overheard.findings.row import CONTROL, Row, place_of
from overheard.statistics.estimate import Estimate
from overheard.statistics.matching import Matches, curve, equal_error_rate, matching_auc

NO_GUESS: Mapping[str, float] = MappingProxyType({})

PAIR_MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "matching_auc": Measure("Pairs told apart", f"{SPACE}of{SPACE}100", 100.0),
        "equal_error_rate": Measure("Equal error rate", f"{SPACE}%", 100.0),
    }
)
"""How the scores of `pair_rows` are told."""


@final
@dataclass(frozen=True, slots=True)
class BesideControl:
    """The findings of one attack in one place, and those of its control.

    Args:
        planned: of the runs as planned, one or more.
        control: of the runs in which examples were dealt anew among all clients.

    """

    planned: tuple[Finding, ...]
    control: tuple[Finding, ...]

    @property
    def every(self) -> tuple[Finding, ...]:
        """All of them."""
        return (*self.planned, *self.control)

    def draws(self, seed: Seed) -> Seed:
        """Return the seed of all intervals of this attack and arm."""
        cell = self.planned[0].cell
        return seed.child("people", cell.arm, cell.attack)

    def row(
        self,
        score: str,
        better: Better,
        value: Estimate,
        blinds: Mapping[str, float] = NO_GUESS,
        references: Mapping[str, float] = NO_GUESS,
    ) -> Row:
        """Return a row of a summary: the figure, and its gain over the first blind guess."""
        cell = self.planned[0].cell
        blind = next(iter(blinds.values()), None)
        return Row(
            arm=cell.arm,
            observers=cell.observers,
            attack=cell.attack,
            question=cell.question,
            rounds=cell.rounds,
            score=score,
            better=better,
            value=value,
            blinds=blinds,
            references=references,
            blind=blind,
            gain=None if blind is None else _gain_over(value, blind, better),
            targets=len({finding.target for finding in self.planned}),
            seeds=len({finding.cell.seed for finding in self.planned}),
        )


def beside_controls(findings: Iterable[Finding]) -> tuple[BesideControl, ...]:
    """Group findings that are choices by their place; controls alone are left out."""
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.candidates:
            groups[place_of(finding.cell)].append(finding)
    every = (
        BesideControl(
            tuple(finding for finding in members if not finding.cell.is_control),
            tuple(finding for finding in members if finding.cell.is_control),
        )
        for members in groups.values()
    )
    return tuple(one for one in every if one.planned)


def mean_in_control(score: str, control: Sequence[Finding]) -> Mapping[str, float]:
    """Return the mean of a score over the control's findings, by the control's name."""
    values = [one.value for finding in control for one in finding.scores if one.name == score]
    return {CONTROL: float(np.mean(values))} if values else {}


def pair_rows(
    place: BesideControl, runs: Sequence[Matches], control: Sequence[Matches], seed: Seed
) -> list[Row]:
    """How well pairs of one person are told from pairs of two, by one threshold.

    `matching_auc` and `equal_error_rate` over the pairs compared, the mean over runs, each
    beside a coin and beside the control; no row where there are pairs of one kind alone.
    """
    told = [run for run in runs if run.has_both]
    if not told:
        return []
    others = [curve(run) for run in control if run.has_both]
    areas = {CONTROL: _mean(other.area()[0] for other in others)} if others else {}
    errors = {CONTROL: _mean(other.equal_error()[0] for other in others)} if others else {}
    draws, coin = seed.child("pairs"), {"a coin": 0.5}
    return [
        place.row("matching_auc", "higher", matching_auc(told, draws), coin, areas),
        place.row("equal_error_rate", "lower", equal_error_rate(told, draws), coin, errors),
    ]


def _gain_over(value: Estimate, blind: float, better: Better) -> Estimate:
    sign = 1 if better == "higher" else -1
    ends = (value.low, value.high)[::sign]
    low, high = (None if end is None else sign * (end - blind) for end in ends)
    return Estimate(sign * (value.mean - blind), low, high)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
