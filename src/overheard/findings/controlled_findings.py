"""Findings about users, grouped with the findings of their control runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding, targets_of
from overheard.findings.number_format import SPACE, Measure
from overheard.findings.score_row import CONTROL_NAME, ScoreRow, row_group
from overheard.statistics.estimate import Estimate, convert_estimate
from overheard.statistics.roc import (
    ScoredPairs,
    compute_roc,
    estimate_auc,
    estimate_equal_error_rate,
)

NO_GUESSES: Mapping[str, float] = MappingProxyType({})

PAIR_MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "matching_auc": Measure("Pair matching AUC", f"{SPACE}of{SPACE}100", 100.0),
        "equal_error_rate": Measure("Equal error rate", f"{SPACE}%", 100.0),
    }
)
"""How the scores of `pair_rows` are displayed."""


@final
@dataclass(frozen=True, slots=True)
class ControlledFindings:
    """Findings of one attack in one cell over all seeds, with those of its control runs.

    Args:
        planned: findings of the planned runs, one or more.
        control: findings of the runs in which examples were permuted among all clients.

    """

    planned: tuple[Finding, ...]
    control: tuple[Finding, ...]

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The findings of the planned runs, then of the control runs."""
        return (*self.planned, *self.control)

    def interval_seed(self, seed: Seed) -> Seed:
        """Return the seed of all intervals of this attack and arm."""
        cell = self.planned[0].cell
        return seed.child("people", cell.arm, cell.attack)

    def make_row(
        self,
        score: str,
        better: Better,
        value: Estimate,
        uninformed: Mapping[str, float] = NO_GUESSES,
        references: Mapping[str, float] = NO_GUESSES,
    ) -> ScoreRow:
        """Return a summary row: the score, and its gain over the first uninformed guess."""
        cell = self.planned[0].cell
        best_guess = next(iter(uninformed.values()), None)
        return ScoreRow(
            arm=cell.arm,
            observers=cell.observers,
            attack=cell.attack,
            question=cell.question,
            rounds=cell.rounds,
            score=score,
            better=better,
            value=value,
            uninformed=uninformed,
            references=references,
            best_uninformed=best_guess,
            gain=None if best_guess is None else _gain_over(value, best_guess, better),
            targets=len(targets_of(self.planned)),
            seeds=len({finding.cell.seed for finding in self.planned}),
        )


def group_with_controls(findings: Iterable[Finding]) -> tuple[ControlledFindings, ...]:
    """Group findings with candidates by cell over all seeds; skip groups of controls alone."""
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.claimed.candidates:
            groups[row_group(finding.cell)].append(finding)
    candidates = (
        ControlledFindings(
            tuple(finding for finding in members if not finding.cell.is_control),
            tuple(finding for finding in members if finding.cell.is_control),
        )
        for members in groups.values()
    )
    return tuple(group for group in candidates if group.planned)


def control_mean(score: str, control: Sequence[Finding]) -> Mapping[str, float]:
    """Return the mean of a score over the control's findings, under the control's name."""
    values = [one.value for finding in control for one in finding.scores if one.name == score]
    return {CONTROL_NAME: float(np.mean(values))} if values else {}


def pair_rows(
    group: ControlledFindings,
    runs: Sequence[ScoredPairs],
    control: Sequence[ScoredPairs],
    seed: Seed,
) -> list[ScoreRow]:
    """Return how well one threshold separates same-user pairs from different-user pairs.

    `estimate_auc` and `estimate_equal_error_rate` over all pairs, the mean over runs, each with
    a coin flip and the control as references. No row if all pairs are of one kind.
    """
    scored = [run for run in runs if run.has_both_kinds]
    if not scored:
        return []
    control_curves = [compute_roc(run) for run in control if run.has_both_kinds]
    control_auc = (
        {CONTROL_NAME: _mean(curve_of_run.auc()[0] for curve_of_run in control_curves)}
        if control_curves
        else {}
    )
    control_error = (
        {
            CONTROL_NAME: _mean(
                curve_of_run.equal_error_rate()[0] for curve_of_run in control_curves
            )
        }
        if control_curves
        else {}
    )
    interval_seed, coin = seed.child("pairs"), {"a coin": 0.5}
    return [
        group.make_row(
            "matching_auc", "higher", estimate_auc(scored, interval_seed), coin, control_auc
        ),
        group.make_row(
            "equal_error_rate",
            "lower",
            estimate_equal_error_rate(scored, interval_seed),
            coin,
            control_error,
        ),
    ]


def _gain_over(value: Estimate, guess: float, better: Better) -> Estimate:
    sign = 1.0 if better == "higher" else -1.0
    return convert_estimate(value, sign, -sign * guess)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def planned_by_attack(findings: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Return the checked findings of the planned runs, by attack; an attack may have none."""
    by_attack: dict[str, list[Finding]] = {finding.cell.attack: [] for finding in findings}
    for finding in findings:
        if finding.is_checked and not finding.cell.is_control:
            by_attack[finding.cell.attack].append(finding)
    return by_attack
