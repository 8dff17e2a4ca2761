"""Table 3: who sent an update, by every attack, prior and source of labelled updates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.data.partition.people import PriorKind
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.identifiers import IDENTIFIERS, SOURCES, identifiers
from overheard.papers.deanonymization.plans import (
    every_sender,
    every_update,
    people,
    plan,
    setting,
)
from overheard.papers.deanonymization.printed import reidentified
from overheard.papers.deanonymization.rows import OF_IDENTITY, Rows, rows_of
from overheard.papers.deanonymization.world import (
    AGES,
    BLOGS,
    HURRIED,
    WISDM,
    IdentityScenario,
)
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan, ThreatPlan


@final
@dataclass(frozen=True, slots=True)
class TablePanel:
    """One data set, and the priors that the server is given of its users."""

    world: IdentityScenario
    priors: tuple[PriorKind, ...]

    def key(self, prior: PriorKind) -> str:
        """The folder of one of its audits."""
        return f"{self.world.key}_{prior}"


OF_TIME: tuple[PriorKind, ...] = ("random", "chronological")

PANELS = (
    TablePanel(BLOGS, OF_TIME),
    TablePanel(AGES, OF_TIME),
    TablePanel(WISDM, (*OF_TIME, "chronological_within_labels")),
)

REDUCED = (TablePanel(HURRIED, OF_TIME),)

EVERY_SOURCE = tuple(source for source in SOURCES for _ in IDENTIFIERS)
"""Of the labelled updates of each attack of a threat."""


@final
@dataclass(frozen=True, slots=True)
class ReidentificationExperiment(Experiment):
    """Every attack on every panel.

    Args:
        panels: data sets and priors.
        reduced: those of a run in a hurry.
        name: of the table.

    """

    panels: tuple[TablePanel, ...] = PANELS
    reduced: tuple[TablePanel, ...] = REDUCED
    name: str = "table3"

    @property
    def title(self) -> str:
        """What the table shows."""
        return "Who sent an update: average precision, times chance, top-1 and top-5"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} Labelled updates of shadow devices "
            "are as published; simulated ones, which the server trains from each broadcast on "
            "the same prior examples, are ours, and no published number stands beside them. "
            "Nor does one beside figures of a sender, whose updates bear one pseudonym and are "
            "told together."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set and prior, with every attack twice."""
        return {
            panel.key(prior): plan(panel.world, people(prior), _threats(panel.world))
            for panel in (self.reduced if quick else self.panels)
            for prior in panel.priors
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Four scores of each attack, beside chance and the control."""
        full = self.plans(quick=False)
        return tuple(
            one
            for panel in self.panels
            for prior in panel.priors
            if (key := panel.key(prior)) in runs.audits
            for one in self._of(
                panel.world,
                prior,
                rows_of(runs.audits[key]),
                runs.plans[key],
                setting(panel.world, runs.plans[key], full.get(key)),
            )
        )

    def _of(
        self, world: IdentityScenario, prior: PriorKind, rows: Rows, run: Plan, where: str
    ) -> list[Figure]:
        figures = []
        for threat in run.threats:
            whom = "update" if threat.pseudonyms == "round" else "sender"
            for attack, source in zip(threat.attacks, EVERY_SOURCE, strict=True):
                name = f"{world.key}_{prior}_{whom}_{source}_{attack.name}"
                told = f"{where}; each {whom} by itself, {attack.name}, {source} updates"
                as_published = whom == "update" and source == "shadow"
                figures += [
                    rows.figure(
                        f"{name}_{score}",
                        f"{told}: {score.replace('_', ' ')}",
                        (threat.named(attack), score),
                        reidentified(world.paper, prior, attack.name, score)
                        if as_published
                        else None,
                    )
                    for score in OF_IDENTITY
                ]
                figures += rows.beside(name, told, threat.named(attack))
        return figures


def _threats(world: IdentityScenario) -> tuple[ThreatPlan, ...]:
    every = tuple(one for source in SOURCES for one in identifiers(world, source))
    return (every_update(every), every_sender(every))
