"""Figure 6: error of the claims by round, and of their mean over rounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard.learning.simplex import normalize_to_shares
from overheard.plans.plan import Plan
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard_studies.decaf.benchmark import BENCHMARKS, SKIN_CANCER, DecafBenchmark
from overheard_studies.decaf.differences import COMMON
from overheard_studies.decaf.plans import DecafSize, build_plan, describe_setting
from overheard_studies.decaf.scores import ATTACK, DISTANCES, PUBLISHED_DECAF
from overheard_studies.estimates import (
    FindingFilter,
    mean_over_findings,
    mean_score,
    reproduced_value,
    select_findings,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

AVERAGED_ROUNDS = 15
"""Largest number of rounds that figure 6 (d) averages."""

FOLLOWED_USER = 2
"""The user, counted from 1, in figure 6 (d)."""


FULL = DecafSize(rounds=20, seeds=(0, 1, 2))
REDUCED = DecafSize(rounds=6, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class RoundsExperiment(Experiment):
    """The users of each data set by round; one user's mean claim over rounds.

    Args:
        benchmarks: data sets.
        averaged_benchmark: the data set for which a user's claims are averaged over rounds.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    benchmarks: tuple[DecafBenchmark, ...] = BENCHMARKS
    averaged_benchmark: DecafBenchmark = SKIN_CANCER
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED
    name: str = "figure6"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Distances by round on five data sets, and averaged over rounds"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        notes = " ".join(f"{one.name}: {one.note}" for one in self.benchmarks)
        return (
            f"{COMMON} {notes} The values of this figure are lost, so no published values are "
            "shown."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        size = self.reduced if quick else self.full
        return {
            one.source.name: build_plan(one, size, (PUBLISHED_DECAF,))
            for one in self.benchmarks
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each distance by round, and for the mean claim over the first rounds."""
        run, full = runs.plans, self.plans(quick=False)
        figures = []
        finished = [one for one in self.benchmarks if one.source.name in runs.audits]
        for one in finished:
            key = one.source.name
            context = describe_setting(one, run[key], full[key])
            figures += [
                reproduced_value(
                    f"{key}_mean_{distance}_round_{number + 1}",
                    f"{context}; round {number + 1}",
                    mean_score(runs.audits[key], FindingFilter(ATTACK, (number,)), distance),
                    None,
                    "lower",
                )
                for number in range(run[key].training.rounds)
                for distance in DISTANCES
            ]
        if self.averaged_benchmark in finished:
            figures += self._averaged_values(
                runs.audits[self.averaged_benchmark.source.name], run, full
            )
        return tuple(figures)

    def _averaged_values(
        self, audit: Audit, run: Mapping[str, Plan], full: Mapping[str, Plan]
    ) -> list[ReproducedValue]:
        """Score one user's claims averaged over the first rounds and rescaled to sum to 1."""
        key, user = self.averaged_benchmark.source.name, client(FOLLOWED_USER - 1)
        by_round = [
            select_findings(audit, FindingFilter(ATTACK, (number,), target=user))
            for number in range(min(AVERAGED_ROUNDS, run[key].training.rounds))
        ]
        figures = []
        for last in range(1, len(by_round) + 1):
            scores_by_distance: dict[str, list[float]] = {
                distance: [] for distance in DISTANCES
            }
            # One finding a seed, in the same order in every round.
            for findings in zip(*by_round[:last], strict=True):
                claims = torch.tensor([finding.claimed for finding in findings])
                scores = _score_shares(
                    normalize_to_shares(claims.double().mean(0)), findings[0].true
                )
                for distance in DISTANCES:
                    scores_by_distance[distance].append(scores[distance])
            figures += [
                reproduced_value(
                    f"{key}_user_{FOLLOWED_USER}_{distance}_rounds_1_to_{last}",
                    f"{describe_setting(self.averaged_benchmark, run[key], full[key])}; user "
                    f"{FOLLOWED_USER}, claims "
                    f"averaged over rounds 1 to {last}",
                    mean_over_findings(by_round[0], scores_by_distance[distance]),
                    None,
                    "lower",
                )
                for distance in DISTANCES
            ]
        return figures


def _score_shares(shares: torch.Tensor, true: tuple[float, ...]) -> dict[str, float]:
    scorer = LabelSharesScorer()
    truth = LabelShares(torch.tensor(true, dtype=torch.float64))
    guesses = scorer.guesses(truth, Knowledge(classes=len(true)))
    return {one.name: one.value for one in scorer.score(LabelShares(shares), truth, guesses)}
