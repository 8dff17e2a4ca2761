"""Figure 10: known updates and targets from different ranges of rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.drawing.figures import Panel, ReportFigure
from overheard.linkage.known_updates import UpdateSource
from overheard.plans.plan import Plan
from overheard_studies.deanonymization.charts import heat_map
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import build_published_attack
from overheard_studies.deanonymization.observations import iterate_run_updates, mean_over_users
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_sender,
)
from overheard_studies.deanonymization.scenarios import (
    BLOGS_MORE_UPDATES,
    QUICK_SCENARIO,
    WISDM,
    IdentityScenario,
)
from overheard_studies.experiment import Experiment
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.values_table import tabulate_values

EPOCHS = 300
"""Passes over the known updates of a range, of which there are few."""


@final
@dataclass(frozen=True, slots=True)
class StagesExperiment(Experiment, IllustratedExperiment):
    """The published network on every pair of ranges of rounds.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        ranges: number of ranges into which the rounds are split.
        source: source of known updates.
        name: name of the figure.

    """

    scenarios: tuple[IdentityScenario, ...] = (BLOGS_MORE_UPDATES, WISDM)
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    ranges: int = 4
    source: UpdateSource = "simulated"
    name: str = "figure10"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Re-identification by the rounds of known updates and of targets"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The figure's values are lost. The paper has "
            "a chronological prior and ten ranges of twenty rounds each. Here there are "
            f"{self.ranges} ranges, and known updates are {self.source}, so that every user "
            "has one in every round that is learned from. A range counts only users with "
            "updates in it."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        return {
            scenario.key: build_plan(
                scenario,
                build_known_user_settings(scenario.chronological_prior),
                (threat_per_sender((build_published_attack(scenario, self.source),)),),
            )
            for scenario in (self.reduced if quick else self.scenarios)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the average precision of every pair of ranges, and two means over pairs."""
        full = self.plans(quick=False)
        return tuple(
            value
            for scenario in self.scenarios
            if scenario.key in runs.audits
            for value in self._scenario_values(
                runs,
                scenario,
                describe_setting(scenario, runs.plans[scenario.key], full.get(scenario.key)),
            )
        )

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw one heat map per data set."""
        page_figures = []
        for scenario in self.scenarios:
            if scenario.key not in runs.audits:
                continue
            scenario_values = [one for one in values if one.name.startswith(f"{scenario.key}_")]
            by_name = {one.name: one.value for one in scenario_values}
            names = split_rounds(runs.plans[scenario.key].training.rounds, self.ranges)
            cells = np.array(
                [
                    [
                        _percent(by_name[_key(scenario, one, other)])
                        for other in range(self.ranges)
                    ]
                    for one in range(self.ranges)
                ]
            )
            labels = [f"{part.start + 1}-{part.stop}" for part in names]
            title = f"Figure 10: {scenario.name}"
            page_figures.append(
                ReportFigure(
                    title,
                    "Average precision per user in %, by the rounds of known updates and of "
                    "targets.",
                    None,
                    (
                        Panel(
                            "",
                            heat_map(
                                cells,
                                labels,
                                labels,
                                ("training rounds", "target rounds"),
                                title,
                            ),
                        ),
                    ),
                    tabulate_values(title, scenario_values),
                    True,
                )
            )
        return PageContent(tuple(page_figures))

    def _scenario_values(
        self, runs: ExperimentRuns, scenario: IdentityScenario, context: str
    ) -> list[ReproducedValue]:
        run = runs.plans[scenario.key]
        parts = split_rounds(run.training.rounds, self.ranges)
        pairs = [(one, other) for one in range(self.ranges) for other in range(self.ranges)]
        by_pair: dict[tuple[int, int], dict[int, Mapping[str, float]]] = {p: {} for p in pairs}
        for updates in iterate_run_updates(runs, scenario, self.source):
            for one, part in enumerate(parts):
                identifier = updates.train_identifier(
                    _within(updates.known.rounds, part), EPOCHS
                )
                for other, later in enumerate(parts):
                    by_pair[one, other][updates.seed] = (
                        {}
                        if identifier is None
                        else identifier.precision_by_user(_within(updates.sent.rounds, later))
                    )
        figures = [
            self._figure(
                _key(scenario, one, other),
                f"{context}; trained on rounds {_label(parts[one])}, targets in "
                f"rounds {_label(parts[other])}",
                [by_pair[one, other]],
            )
            for one, other in pairs
        ]
        same = [by_pair[one, other] for one, other in pairs if one == other]
        different = [by_pair[one, other] for one, other in pairs if one != other]
        return [
            *figures,
            self._figure(
                f"{scenario.key}_same_rounds", f"{context}; targets in the same rounds", same
            ),
            self._figure(
                f"{scenario.key}_other_rounds", f"{context}; targets in other rounds", different
            ),
        ]

    def _figure(
        self, name: str, words: str, cells: Sequence[Mapping[int, Mapping[str, float]]]
    ) -> ReproducedValue:
        """Return the mean over users of their means over these cells."""
        merged: dict[int, dict[str, list[float]]] = {}
        for cell in cells:
            for seed, by_user in cell.items():
                for user, precision in by_user.items():
                    merged.setdefault(seed, {}).setdefault(user, []).append(precision)
        value = mean_over_users(
            {
                seed: {user: sum(several) / len(several) for user, several in by_user.items()}
                for seed, by_user in merged.items()
            }
        )
        if value is None:
            return ReproducedValue(
                name,
                f"{words}: no user has updates in both ranges",
                None,
                None,
                None,
                None,
                "higher",
            )
        return ReproducedValue(name, words, value.mean, value.low, value.high, None, "higher")


def split_rounds(rounds: int, count: int) -> tuple[range, ...]:
    """Split the rounds into `count` ranges of about equal length.

    >>> split_rounds(10, 4)
    (range(0, 2), range(2, 5), range(5, 7), range(7, 10))
    """
    ends = [rounds * cut // count for cut in range(count + 1)]
    return tuple(range(start, end) for start, end in pairwise(ends))


def _within(rounds: Int[Tensor, " updates"], part: range) -> Bool[Tensor, " updates"]:
    return (rounds >= part.start) & (rounds < part.stop)


def _key(scenario: IdentityScenario, one: int, other: int) -> str:
    return f"{scenario.key}_learned_{one + 1}_told_{other + 1}"


def _label(part: range) -> str:
    return f"{part.start + 1} to {part.stop}"


def _percent(value: float | None) -> float:
    return float("nan") if value is None else 100 * value
