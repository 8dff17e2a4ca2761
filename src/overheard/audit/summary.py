"""Means over targets and seeds, each with an interval and beside its guesses."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overheard.audit.finding import Cell, Finding
from overheard.core.parties import Party
from overheard.core.scorer import Better, Score
from overheard.core.seeds import Seed

DRAWS = 2000
"""Bootstrap draws: the ends of a 95 % interval then wander by a few hundredths of its width."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over targets and seeds with its 95 % bootstrap interval.

    From one figure alone there is nothing to draw: low and high are None.
    """

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """What one attack got out of all its targets, by one figure of merit.

    Args:
        arm: of the findings below.
        observers: of the findings below.
        attack: of the findings below.
        question: of the findings below.
        rounds: listened to.
        score: name of the figure of merit.
        better: its direction.
        value: mean of the figure.
        blinds: mean of the figure for each guess that heard nothing.
        references: mean of the figure for each guess told a part of the truth.
        blind: mean for the best single blind guess; None where there is none.
        gain: how much better than that guess, taken target by target; above 0 = it leaks.
        targets: how many different targets.
        seeds: how many different seeds.

    """

    arm: str
    observers: tuple[Party, ...]
    attack: str
    question: str
    rounds: tuple[int, ...]
    score: str
    better: Better
    value: Estimate
    blinds: Mapping[str, float]
    references: Mapping[str, float]
    blind: float | None
    gain: Estimate | None
    targets: int
    seeds: int


def summarise(findings: Sequence[Finding], seed: Seed) -> tuple[Row, ...]:
    """One row per arm, observers, attack, question, rounds heard and score.

    Intervals come from a cluster bootstrap: seeds are drawn with replacement, then targets
    within a seed, since targets of one run share its model and are no independent trials
    (Field and Welsh 2007, two-stage bootstrap). With one seed only the targets are drawn: the
    interval then says nothing about other runs, and `seeds` tells.
    """
    groups: dict[tuple[object, ...], list[tuple[Finding, Score]]] = defaultdict(list)
    for finding in findings:
        for score in finding.scores:
            groups[(*_shared(finding.cell), score.name)].append((finding, score))
    return tuple(_row(members, seed) for members in groups.values())


def _shared(cell: Cell) -> tuple[object, ...]:
    return (cell.arm, cell.observers, cell.attack, cell.question, cell.rounds)


def _row(members: Sequence[tuple[Finding, Score]], seed: Seed) -> Row:
    cell, first = members[0][0].cell, members[0][1]
    scores = [score for _, score in members]
    seeds = np.array([finding.cell.seed for finding, _ in members])
    values = np.array([score.value for score in scores])
    blinds = {name: _mean([score.blinds[name] for score in scores]) for name in first.blinds}
    best = _best(blinds, first.better)
    sign = 1 if first.better == "higher" else -1
    draws = seed.child("bootstrap", cell.arm, cell.attack, first.name)
    return Row(
        arm=cell.arm,
        observers=cell.observers,
        attack=cell.attack,
        question=cell.question,
        rounds=cell.rounds,
        score=first.name,
        better=first.better,
        value=estimate(values, seeds, draws),
        blinds=blinds,
        references={
            name: _mean([score.references[name] for score in scores])
            for name in first.references
        },
        blind=None if best is None else blinds[best],
        gain=None
        if best is None
        else estimate(
            sign * (values - np.array([score.blinds[best] for score in scores])), seeds, draws
        ),
        targets=len({finding.target for finding, _ in members}),
        seeds=len(set(seeds.tolist())),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _best(blinds: Mapping[str, float], better: Better) -> str | None:
    """The one guess that does best on average: nobody can pick a guess target by target."""
    if not blinds:
        return None
    return (min if better == "lower" else max)(blinds, key=lambda name: blinds[name])


def estimate(values: NDArray[np.float64], clusters: NDArray[np.int64], seed: Seed) -> Estimate:
    """The mean of `values` with a two-stage bootstrap interval over `clusters`."""
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, None, None)
    generator = seed.numpy()
    groups = [values[clusters == cluster] for cluster in np.unique(clusters)]
    sums, counts = np.zeros(DRAWS), np.zeros(DRAWS)
    for _ in groups:
        chosen = generator.integers(0, len(groups), DRAWS)
        for number, group in enumerate(groups):
            here = chosen == number
            picks = generator.integers(0, len(group), (int(here.sum()), len(group)))
            sums[here] += group[picks].sum(1)  # (draws,)
            counts[here] += len(group)
    means = sums / counts
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(low), float(high))
