"""Figure 8: re-identification by the number of known updates per user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.linkage.known_updates import KnownUpdates, UpdateSource
from overheard.plans.plan import Plan
from overheard_studies.deanonymization.charts import ValueSeries, series_figure
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import build_published_attack
from overheard_studies.deanonymization.observations import (
    RunUpdates,
    iterate_run_updates,
    mark_all,
    mean_over_users,
)
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_sender,
)
from overheard_studies.deanonymization.result_rows import PRECISION
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

BATCH_SIZE = 32
"""Updates per training step."""


@final
@dataclass(frozen=True, slots=True)
class KnownCountExperiment(Experiment, IllustratedExperiment):
    """The published network, trained on some updates of each known user.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        counts: numbers of updates per user; those that are not below the number of updates of a
            user are left out. All its updates are used too.
        source: source of these updates.
        steps: training steps of the network, equal for all numbers of updates. With few updates
            it makes more passes over them.
        name: name of the figure.

    """

    scenarios: tuple[IdentityScenario, ...] = (BLOGS_MORE_UPDATES, WISDM)
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    counts: tuple[int, ...] = (1, 2, 4, 8, 16)
    source: UpdateSource = "simulated"
    steps: int = 3000
    name: str = "figure8"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Re-identification by the number of known updates per user"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The values in the paper's "
            f"figure could not be read. The prior "
            "examples are random ones. The "
            f"known updates are {self.source}, as a shadow device here takes part far more "
            "rarely than the paper's. Each user has a random selection of them, and the "
            f"network trains {self.steps} steps for every number of updates."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        return {
            scenario.key: build_plan(
                scenario,
                build_known_user_settings("random"),
                (threat_per_sender((build_published_attack(scenario, self.source),)),),
            )
            for scenario in (self.reduced if quick else self.scenarios)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the average precision by number of updates, and with all updates."""
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
        """Draw the average precision by the number of known updates."""
        by_name = {one.name: one for one in values}
        lines = [
            ValueSeries(
                scenario.name,
                select_counts(scenario, runs.plans[scenario.key], self.counts),
                [
                    by_name[f"{scenario.key}_updates_{n}"]
                    for n in select_counts(scenario, runs.plans[scenario.key], self.counts)
                ],
            )
            for scenario in self.scenarios
            if scenario.key in runs.audits
        ]
        title = "Figure 8: by the number of known updates per user"
        return PageContent((series_figure(title, lines, "known updates per user", PRECISION),))

    def _scenario_values(
        self, runs: ExperimentRuns, scenario: IdentityScenario, context: str
    ) -> list[ReproducedValue]:
        by_count: dict[str, dict[int, Mapping[str, float]]] = {}
        counts = select_counts(scenario, runs.plans[scenario.key], self.counts)
        for updates in iterate_run_updates(runs, scenario, self.source):
            for count in (*counts, None):
                draw_seed = Seed(updates.seed).child("some")
                selected = (
                    mark_all(len(updates.known.users))
                    if count is None
                    else sample_per_user(updates.known, count, draw_seed)
                )
                by_count.setdefault(str(count or "all"), {})[updates.seed] = _train_and_score(
                    updates, selected, self.steps
                )
        values = []
        for count_name in (*map(str, counts), "all"):
            value = mean_over_users(by_count[count_name])
            setting = f"{context}; trained on {count_name} {self.source} updates per user"
            values.append(
                ReproducedValue(
                    f"{scenario.key}_updates_{count_name}",
                    setting,
                    None if value is None else value.mean,
                    None if value is None else value.low,
                    None if value is None else value.high,
                    None,
                    "higher",
                )
            )
        return values


def select_counts(
    scenario: IdentityScenario, plan: Plan, counts: Sequence[int]
) -> tuple[int, ...]:
    """Return the counts that are smaller than the number of updates of a user."""
    available = min(scenario.most_rounds, plan.training.rounds)
    return tuple(count for count in counts if count < available)


def sample_per_user(known: KnownUpdates, count: int, seed: Seed) -> Bool[Tensor, " updates"]:
    """Select up to `count` updates of each user at random."""
    selected = torch.zeros(len(known.users), dtype=torch.bool)
    for user in sorted(set(known.users.tolist())):
        rows = (known.users == user).nonzero().flatten()
        order = torch.randperm(len(rows), generator=seed.child("user", user).generator())
        selected[rows[order[:count]]] = True
    return selected


def _train_and_score(
    updates: RunUpdates, selected: Bool[Tensor, " known"], steps: int
) -> Mapping[str, float]:
    epochs = max(1, steps * BATCH_SIZE // max(BATCH_SIZE, int(selected.sum())))
    identifier = updates.train_identifier(selected, epochs)
    return (
        {}
        if identifier is None
        else identifier.precision_by_user(mark_all(len(updates.sent.senders)))
    )
