"""Figure 6: how far the claims lie from the truth round by round, and over rounds together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import client
from overheard.findings.finding import Audit
from overheard.learning.simplex import normalised
from overheard.papers.decaf.benchmark import BENCHMARKS, SKIN_CANCER, DecafBenchmark
from overheard.papers.decaf.differences import COMMON
from overheard.papers.decaf.plans import DecafSize, plan, setting
from overheard.papers.decaf.scores import ATTACK, DISTANCES
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import ReadingPlace, figure, found, mean, mean_of
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer

TOGETHER = 15
"""Rounds up to which figure 6 (d) averages."""

FOLLOWED = 2
"""The user, counted from 1, whom figure 6 (d) follows."""


FULL = DecafSize(rounds=20, seeds=(0, 1, 2))
REDUCED = DecafSize(rounds=6, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class RoundsExperiment(Experiment):
    """Each data set's users over many rounds; one user of one data set over rounds together.

    Args:
        benchmarks: whose users are followed.
        averaged: the one of them of which a user's claims are averaged over rounds.
        full: how much is run.
        reduced: how much is run in a hurry.
        name: of the figure.

    """

    benchmarks: tuple[DecafBenchmark, ...] = BENCHMARKS
    averaged: DecafBenchmark = SKIN_CANCER
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED
    name: str = "figure6"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Distances by round on five data sets, and of several rounds together"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        notes = " ".join(f"{one.name}: {one.note}" for one in self.benchmarks)
        return (
            f"{COMMON} {notes} The numbers of this figure are lost: it has no published ones."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        size = self.reduced if quick else self.full
        return {one.source.name: plan(one, size, (Decaf(),)) for one in self.benchmarks}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Each distance after each round, and after the first rounds together."""
        run, full = runs.plans, self.plans(quick=False)
        figures = []
        there = [one for one in self.benchmarks if one.source.name in runs.audits]
        for one in there:
            key = one.source.name
            where = setting(one, run[key], full[key])
            figures += [
                figure(
                    f"{key}_mean_{distance}_round_{number + 1}",
                    f"{where}; round {number + 1}",
                    mean(runs.audits[key], ReadingPlace(ATTACK, (number,)), distance),
                    None,
                    "lower",
                )
                for number in range(run[key].training.rounds)
                for distance in DISTANCES
            ]
        if self.averaged in there:
            figures += self._together(runs.audits[self.averaged.source.name], run, full)
        return tuple(figures)

    def _together(
        self, audit: Audit, run: Mapping[str, Plan], full: Mapping[str, Plan]
    ) -> list[Figure]:
        """One user's claims averaged over the first rounds, then rescaled to sum to 1."""
        key, user = self.averaged.source.name, client(FOLLOWED - 1)
        by_round = [
            found(audit, ReadingPlace(ATTACK, (number,), target=user))
            for number in range(min(TOGETHER, run[key].training.rounds))
        ]
        figures = []
        for last in range(1, len(by_round) + 1):
            values: dict[str, list[float]] = {distance: [] for distance in DISTANCES}
            # One finding a seed, in the same order in every round.
            for heard in zip(*by_round[:last], strict=True):
                claims = torch.tensor([finding.claimed for finding in heard])
                scored = _scored(normalised(claims.double().mean(0)), heard[0].true)
                for distance in DISTANCES:
                    values[distance].append(scored[distance])
            figures += [
                figure(
                    f"{key}_user_{FOLLOWED}_{distance}_rounds_1_to_{last}",
                    f"{setting(self.averaged, run[key], full[key])}; user {FOLLOWED}, claims "
                    f"averaged over rounds 1 to {last}",
                    mean_of(by_round[0], values[distance]),
                    None,
                    "lower",
                )
                for distance in DISTANCES
            ]
        return figures


def _scored(shares: torch.Tensor, true: tuple[float, ...]) -> dict[str, float]:
    scorer = LabelSharesScorer()
    truth = LabelShares(torch.tensor(true, dtype=torch.float64))
    guesses = scorer.guesses(truth, Knowledge(classes=len(true)))
    return {one.name: one.value for one in scorer.score(LabelShares(shares), truth, guesses)}
