"""Figure 10: known updates of some rounds, and targets of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.drawing.plates import Panel, Plate
from overheard.linkage.prior_updates import Source
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import heat_map
from overheard.papers.deanonymization.heard import mean_over_users, updates_of
from overheard.papers.deanonymization.identifiers import published
from overheard.papers.deanonymization.plans import every_sender, people, plan, setting
from overheard.papers.deanonymization.world import BLOGS_OFTEN, HURRIED, WISDM, IdentityScenario
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.numbers_table import numbers_table
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan

EPOCHS = 300
"""Passes over the known updates of a range, which are few."""


@final
@dataclass(frozen=True, slots=True)
class StagesExperiment(Experiment, Drawn):
    """The published network on every pair of ranges of rounds.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        ranges: into how many the rounds are cut.
        source: of known updates.
        name: of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS_OFTEN, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    ranges: int = 4
    source: Source = "simulated"
    name: str = "figure10"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Who sent an update, by the rounds of known updates and of targets"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The figure's numbers are lost. The paper has a "
            f"chronological prior and ten ranges of twenty rounds each; ours are {self.ranges} "
            f"ranges, and known updates are {self.source}, for which every user has one in "
            "every round that is learned from. Only users who were heard in a range count in "
            "it."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        return {
            world.key: plan(
                world,
                people(world.in_time),
                (every_sender((published(world, self.source),)),),
            )
            for world in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Average precision of every pair, of the diagonal, and off it."""
        full = self.plans(quick=False)
        return tuple(
            figure
            for world in self.worlds
            if world.key in runs.audits
            for figure in self._of(
                runs, world, setting(world, runs.plans[world.key], full.get(world.key))
            )
        )

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """A heat map a data set."""
        plates = []
        for world in self.worlds:
            if world.key not in runs.audits:
                continue
            own = [one for one in figures if one.name.startswith(f"{world.key}_")]
            told = {one.name: one.ours for one in own}
            names = ranges_of(runs.plans[world.key].training.rounds, self.ranges)
            values = np.array(
                [
                    [_shown(told[_key(world, one, other)]) for other in range(self.ranges)]
                    for one in range(self.ranges)
                ]
            )
            words = [f"{part.start + 1}-{part.stop}" for part in names]
            title = f"Figure 10: {world.name}"
            plates.append(
                Plate(
                    title,
                    "Average precision a user, per cent, by the rounds of both.",
                    None,
                    (
                        Panel(
                            "",
                            heat_map(
                                values, words, words, ("learned from", "told apart"), title
                            ),
                        ),
                    ),
                    numbers_table(title, own),
                    True,
                )
            )
        return Drawing(tuple(plates))

    def _of(self, runs: Runs, world: IdentityScenario, where: str) -> list[Figure]:
        run = runs.plans[world.key]
        parts = ranges_of(run.training.rounds, self.ranges)
        pairs = [(one, other) for one in range(self.ranges) for other in range(self.ranges)]
        told: dict[tuple[int, int], dict[int, Mapping[str, float]]] = {p: {} for p in pairs}
        for updates in updates_of(runs, world, self.source):
            for one, part in enumerate(parts):
                teller = updates.learn(_within(updates.known.rounds, part), EPOCHS)
                for other, later in enumerate(parts):
                    told[one, other][updates.seed] = (
                        {}
                        if teller is None
                        else teller.precisions(_within(updates.sent.rounds, later))
                    )
        figures = [
            self._figure(
                _key(world, one, other),
                f"{where}; learned from rounds {_words(parts[one])}, of rounds "
                f"{_words(parts[other])}",
                [told[one, other]],
            )
            for one, other in pairs
        ]
        same = [told[one, other] for one, other in pairs if one == other]
        apart = [told[one, other] for one, other in pairs if one != other]
        return [
            *figures,
            self._figure(f"{world.key}_same_rounds", f"{where}; of the same rounds", same),
            self._figure(f"{world.key}_other_rounds", f"{where}; of other rounds", apart),
        ]

    def _figure(
        self, name: str, words: str, cells: Sequence[Mapping[int, Mapping[str, float]]]
    ) -> Figure:
        """The mean over users of their means over these cells."""
        merged: dict[int, dict[str, list[float]]] = {}
        for cell in cells:
            for seed, by_user in cell.items():
                for who, precision in by_user.items():
                    merged.setdefault(seed, {}).setdefault(who, []).append(precision)
        value = mean_over_users(
            {
                seed: {who: sum(held) / len(held) for who, held in by_user.items()}
                for seed, by_user in merged.items()
            }
        )
        if value is None:
            return Figure(
                name, f"{words}: nobody was heard in both", None, None, None, None, "higher"
            )
        return Figure(name, words, value.mean, value.low, value.high, None, "higher")


def ranges_of(rounds: int, count: int) -> tuple[range, ...]:
    """So many ranges of about equally many rounds.

    >>> ranges_of(10, 4)
    (range(0, 2), range(2, 5), range(5, 7), range(7, 10))
    """
    ends = [rounds * cut // count for cut in range(count + 1)]
    return tuple(range(start, end) for start, end in pairwise(ends))


def _within(rounds: Int[Tensor, " updates"], part: range) -> Bool[Tensor, " updates"]:
    return (rounds >= part.start) & (rounds < part.stop)


def _key(world: IdentityScenario, one: int, other: int) -> str:
    return f"{world.key}_learned_{one + 1}_told_{other + 1}"


def _words(part: range) -> str:
    return f"{part.start + 1} to {part.stop}"


def _shown(value: float | None) -> float:
    return float("nan") if value is None else 100 * value
