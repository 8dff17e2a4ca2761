"""Figure 8: re-identification by the number of known updates per user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.linkage.known_updates import KnownUpdates, UpdateSource
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import Series, series_plate
from overheard.papers.deanonymization.heard import (
    Updates,
    every,
    mean_over_users,
    updates_of,
)
from overheard.papers.deanonymization.identifiers import published
from overheard.papers.deanonymization.plans import every_sender, people, plan, setting
from overheard.papers.deanonymization.rows import PRECISION
from overheard.papers.deanonymization.world import BLOGS_OFTEN, HURRIED, WISDM, IdentityScenario
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan

BATCH = 32
"""Updates per training step."""


@final
@dataclass(frozen=True, slots=True)
class KnownCountExperiment(Experiment, Drawn):
    """The published network, trained on some updates of each known user.

    Args:
        worlds: data sets with their federations.
        reduced: the same for a quick run.
        counts: numbers of updates per user below the available one; all updates are used too.
        source: source of these updates.
        steps: training steps of the network. With few updates it makes more passes, so that it
            is not stopped before it has learned.
        name: name of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS_OFTEN, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
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
            f"{common(self.worlds)} The figure's heights are lost. The prior is random. The "
            f"known updates are {self.source}, as a shadow device here takes part far more "
            "rarely than the paper's. Each user has a random selection of them, and the "
            f"network trains {self.steps} steps for every number of updates."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        return {
            scenario.key: plan(
                scenario, people("random"), (every_sender((published(scenario, self.source),)),)
            )
            for scenario in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return the average precision by number of updates, and with all updates."""
        full = self.plans(quick=False)
        return tuple(
            value
            for scenario in self.worlds
            if scenario.key in runs.audits
            for value in self._scenario_values(
                runs,
                scenario,
                setting(scenario, runs.plans[scenario.key], full.get(scenario.key)),
            )
        )

    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw the average precision by the number of known updates."""
        by_name = {one.name: one for one in values}
        lines = [
            Series(
                scenario.name,
                counts_of(scenario, runs.plans[scenario.key], self.counts),
                [
                    by_name[f"{scenario.key}_updates_{n}"]
                    for n in counts_of(scenario, runs.plans[scenario.key], self.counts)
                ],
            )
            for scenario in self.worlds
            if scenario.key in runs.audits
        ]
        title = "Figure 8: by the number of known updates per user"
        return Drawing((series_plate(title, lines, "known updates per user", PRECISION),))

    def _scenario_values(
        self, runs: Runs, scenario: IdentityScenario, context: str
    ) -> list[Figure]:
        by_count: dict[str, dict[int, Mapping[str, float]]] = {}
        counts = counts_of(scenario, runs.plans[scenario.key], self.counts)
        for updates in updates_of(runs, scenario, self.source):
            for count in (*counts, None):
                draw_seed = Seed(updates.seed).child("some")
                selected = (
                    every(len(updates.known.users))
                    if count is None
                    else some_of_each(updates.known, count, draw_seed)
                )
                by_count.setdefault(str(count or "all"), {})[updates.seed] = _train_and_score(
                    updates, selected, self.steps
                )
        values = []
        for count_name in (*map(str, counts), "all"):
            value = mean_over_users(by_count[count_name])
            setting = f"{context}; trained on {count_name} {self.source} updates per user"
            values.append(
                Figure(
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


def counts_of(scenario: IdentityScenario, run: Plan, counts: Sequence[int]) -> tuple[int, ...]:
    """Return the counts that are smaller than the number of updates of a user."""
    available = min(scenario.most_rounds, run.training.rounds)
    return tuple(count for count in counts if count < available)


def some_of_each(known: KnownUpdates, count: int, seed: Seed) -> Bool[Tensor, " updates"]:
    """Select up to `count` updates of each user at random."""
    selected = torch.zeros(len(known.users), dtype=torch.bool)
    for person in sorted(set(known.users.tolist())):
        rows = (known.users == person).nonzero().flatten()
        order = torch.randperm(len(rows), generator=seed.child("user", person).generator())
        selected[rows[order[:count]]] = True
    return selected


def _train_and_score(
    updates: Updates, selected: Bool[Tensor, " known"], steps: int
) -> Mapping[str, float]:
    epochs = max(1, steps * BATCH // max(BATCH, int(selected.sum())))
    identifier = updates.learn(selected, epochs)
    return {} if identifier is None else identifier.precisions(every(len(updates.sent.senders)))
