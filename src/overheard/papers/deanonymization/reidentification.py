"""Table 3: re-identification by attack, prior and source of labelled updates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.data.partition.known_user_settings import PriorKind
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
    """One scenario and the kinds of prior data that the server has."""

    world: IdentityScenario
    priors: tuple[PriorKind, ...]

    def key(self, prior: PriorKind) -> str:
        """Return the sub-folder of the audit with this prior."""
        return f"{self.world.key}_{prior}"


OF_TIME: tuple[PriorKind, ...] = ("random", "chronological")

PANELS = (
    TablePanel(BLOGS, OF_TIME),
    TablePanel(AGES, OF_TIME),
    TablePanel(WISDM, (*OF_TIME, "chronological_within_labels")),
)

REDUCED = (TablePanel(HURRIED, OF_TIME),)

EVERY_SOURCE = tuple(source for source in SOURCES for _ in IDENTIFIERS)
"""The source of labelled updates for each attack of a threat."""


@final
@dataclass(frozen=True, slots=True)
class ReidentificationExperiment(Experiment):
    """Every attack on every panel.

    Args:
        panels: scenarios and priors.
        reduced: the same for a quick run.
        name: name of the table.

    """

    panels: tuple[TablePanel, ...] = PANELS
    reduced: tuple[TablePanel, ...] = REDUCED
    name: str = "table3"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "Re-identification: average precision, times chance, top-1 and top-5"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} Labelled updates of shadow devices "
            "are as published. Simulated ones, which the server trains from each broadcast on "
            "the same prior examples, are Overheard's and have no published values. Values "
            "per sender have none either: there all updates of a sender have one pseudonym "
            "and are scored together."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set and prior, with every attack twice."""
        return {
            panel.key(prior): plan(panel.world, people(prior), _threats(panel.world))
            for panel in (self.reduced if quick else self.panels)
            for prior in panel.priors
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return four scores of each attack, with chance and the control."""
        full = self.plans(quick=False)
        return tuple(
            one
            for panel in self.panels
            for prior in panel.priors
            if (key := panel.key(prior)) in runs.audits
            for one in self._scenario_values(
                panel.world,
                prior,
                rows_of(runs.audits[key]),
                runs.plans[key],
                setting(panel.world, runs.plans[key], full.get(key)),
            )
        )

    def _scenario_values(
        self, scenario: IdentityScenario, prior: PriorKind, rows: Rows, run: Plan, context: str
    ) -> list[Figure]:
        values = []
        for threat in run.threats:
            unit = "update" if threat.pseudonyms == "round" else "sender"
            for attack, source in zip(threat.attacks, EVERY_SOURCE, strict=True):
                name = f"{scenario.key}_{prior}_{unit}_{source}_{attack.name}"
                description = f"{context}; per {unit}, {attack.name}, {source} updates"
                as_published = unit == "update" and source == "shadow"
                values += [
                    rows.figure(
                        f"{name}_{score}",
                        f"{description}: {score.replace('_', ' ')}",
                        (threat.attack_name(attack), score),
                        reidentified(scenario.paper, prior, attack.name, score)
                        if as_published
                        else None,
                    )
                    for score in OF_IDENTITY
                ]
                values += rows.beside(name, description, threat.attack_name(attack))
        return values


def _threats(scenario: IdentityScenario) -> tuple[ThreatPlan, ...]:
    every = tuple(one for source in SOURCES for one in identifiers(scenario, source))
    return (every_update(every), every_sender(every))
