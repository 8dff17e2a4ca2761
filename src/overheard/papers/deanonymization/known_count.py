"""Figure 8: how many updates of a known user the attacker needs to learn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.linkage.prior_updates import KnownUpdates, Source
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
"""Updates a step."""


@final
@dataclass(frozen=True, slots=True)
class KnownCountExperiment(Experiment, Drawn):
    """The published network, trained on some updates of each known user.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        counts: of updates of each user, as far as there are more; all are tried besides.
        source: of these updates.
        steps: that the network is trained: as many passes as fit, so that one of few updates is
            not stopped before it learned.
        name: of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS_OFTEN, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    counts: tuple[int, ...] = (1, 2, 4, 8, 16)
    source: Source = "simulated"
    steps: int = 3000
    name: str = "figure8"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Who sent an update, by the number of known updates a user"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The figure's heights are lost. The prior is random. The "
            f"known updates are {self.source}, since a shadow device of ours is heard far more "
            "rarely than the paper's; each user has a random choice of them, and the network "
            f"trains {self.steps} steps whatever their number."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        return {
            world.key: plan(
                world, people("random"), (every_sender((published(world, self.source),)),)
            )
            for world in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Average precision by number, and with all."""
        full = self.plans(quick=False)
        return tuple(
            figure
            for world in self.worlds
            if world.key in runs.audits
            for figure in self._of(
                runs,
                world,
                setting(world, runs.plans[world.key], full.get(world.key)),
            )
        )

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """Average precision by the number of known updates."""
        told = {one.name: one for one in figures}
        lines = [
            Series(
                world.name,
                counts_of(world, runs.plans[world.key], self.counts),
                [
                    told[f"{world.key}_updates_{n}"]
                    for n in counts_of(world, runs.plans[world.key], self.counts)
                ],
            )
            for world in self.worlds
            if world.key in runs.audits
        ]
        title = "Figure 8: by the number of known updates a user"
        return Drawing((series_plate(title, lines, "known updates a user", PRECISION),))

    def _of(self, runs: Runs, world: IdentityScenario, where: str) -> list[Figure]:
        told: dict[str, dict[int, Mapping[str, float]]] = {}
        counts = counts_of(world, runs.plans[world.key], self.counts)
        for updates in updates_of(runs, world, self.source):
            for count in (*counts, None):
                draws = Seed(updates.seed).child("some")
                chosen = (
                    every(len(updates.known.people))
                    if count is None
                    else some_of_each(updates.known, count, draws)
                )
                told.setdefault(str(count or "all"), {})[updates.seed] = _learned(
                    updates, chosen, self.steps
                )
        figures = []
        for many in (*map(str, counts), "all"):
            value = mean_over_users(told[many])
            words = f"{where}; learned from {many} {self.source} updates a user"
            figures.append(
                Figure(
                    f"{world.key}_updates_{many}",
                    words,
                    None if value is None else value.mean,
                    None if value is None else value.low,
                    None if value is None else value.high,
                    None,
                    "higher",
                )
            )
        return figures


def counts_of(world: IdentityScenario, run: Plan, counts: Sequence[int]) -> tuple[int, ...]:
    """Those of the counts below which some updates of a user are left out."""
    most = min(world.most_rounds, run.training.rounds)
    return tuple(count for count in counts if count < most)


def some_of_each(known: KnownUpdates, count: int, seed: Seed) -> Bool[Tensor, " updates"]:
    """Marks so many updates of each user at random; all of one who has no more."""
    chosen = torch.zeros(len(known.people), dtype=torch.bool)
    for person in sorted(set(known.people.tolist())):
        own = (known.people == person).nonzero().flatten()
        order = torch.randperm(len(own), generator=seed.child("user", person).generator())
        chosen[own[order[:count]]] = True
    return chosen


def _learned(
    updates: Updates, chosen: Bool[Tensor, " known"], steps: int
) -> Mapping[str, float]:
    epochs = max(1, steps * BATCH // max(BATCH, int(chosen.sum())))
    teller = updates.learn(chosen, epochs)
    return {} if teller is None else teller.precisions(every(len(updates.sent.senders)))
