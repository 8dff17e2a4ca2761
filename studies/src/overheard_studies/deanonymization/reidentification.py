"""Table 3: re-identification by attack, prior examples and source of known updates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.data.partition.known_user_settings import PriorKind
from overheard.plans.plan import Plan, ThreatPlan
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import (
    IDENTITY_ATTACKS,
    UPDATE_SOURCES,
    build_identity_attacks,
    build_wccn_attack,
)
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_sender,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_reidentification
from overheard_studies.deanonymization.result_rows import (
    IDENTITY_SCORES,
    ResultRows,
    build_result_rows,
)
from overheard_studies.deanonymization.scenarios import (
    AGES,
    BLOGS,
    QUICK_SCENARIO,
    WISDM,
    IdentityScenario,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns


@final
@dataclass(frozen=True, slots=True)
class PriorPanel:
    """One scenario and the kinds of prior examples that the server has."""

    scenario: IdentityScenario
    priors: tuple[PriorKind, ...]

    def key(self, prior: PriorKind) -> str:
        """Return the sub-folder of the audit with this prior."""
        return f"{self.scenario.key}_{prior}"


PAPER_PRIORS: tuple[PriorKind, ...] = ("random", "chronological")

PANELS = (
    PriorPanel(BLOGS, PAPER_PRIORS),
    PriorPanel(AGES, PAPER_PRIORS),
    PriorPanel(WISDM, (*PAPER_PRIORS, "chronological_within_labels")),
)

REDUCED = (PriorPanel(QUICK_SCENARIO, PAPER_PRIORS),)

UNLINKED = "reidentify_wccn_unlinked"
"""Name of Overheard's attack without linking and assignment, as the paper's attacks are."""

SOURCES_AND_NAMES = tuple(
    (source, name)
    for source in UPDATE_SOURCES
    for name in (*(attack.name for attack in IDENTITY_ATTACKS), UNLINKED)
)
"""The source of known updates and the name of each attack of a threat."""


@final
@dataclass(frozen=True, slots=True)
class ReidentificationExperiment(Experiment):
    """Every attack on every panel.

    Args:
        panels: scenarios and priors.
        reduced: the same for a quick run.
        name: name of the table.

    """

    panels: tuple[PriorPanel, ...] = PANELS
    reduced: tuple[PriorPanel, ...] = REDUCED
    name: str = "table3"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "Re-identification: average precision, times chance, top-1 and top-5"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(one.scenario for one in self.panels)} Known updates of "
            "shadow devices "
            "are as published. Simulated ones, which the server trains from each broadcast on "
            "the same prior examples, are Overheard's and have no published values. Values "
            "per sender have none either: there all updates of a sender have one pseudonym "
            "and are scored together."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set and prior, with every attack for both sources."""
        return {
            panel.key(prior): build_plan(
                panel.scenario, build_known_user_settings(prior), _threats(panel.scenario)
            )
            for panel in (self.reduced if quick else self.panels)
            for prior in panel.priors
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return four scores of each attack, with chance and the control."""
        full = self.plans(quick=False)
        return tuple(
            one
            for panel in self.panels
            for prior in panel.priors
            if (key := panel.key(prior)) in runs.audits
            for one in self._scenario_values(
                panel.scenario,
                prior,
                build_result_rows(runs.audits[key]),
                runs.plans[key],
                describe_setting(panel.scenario, runs.plans[key], full.get(key)),
            )
        )

    def _scenario_values(
        self,
        scenario: IdentityScenario,
        prior: PriorKind,
        rows: ResultRows,
        run: Plan,
        context: str,
    ) -> list[ReproducedValue]:
        values = []
        for threat in run.threats:
            unit = "update" if threat.pseudonyms == "round" else "sender"
            for attack, (source, label) in zip(threat.attacks, SOURCES_AND_NAMES, strict=True):
                name = f"{scenario.key}_{prior}_{unit}_{source}_{label}"
                description = f"{context}; per {unit}, {label}, {source} updates"
                as_published = unit == "update" and source == "shadow"
                values += [
                    rows.reproduced_value(
                        f"{name}_{score}",
                        f"{description}: {score.replace('_', ' ')}",
                        (threat.attack_name(attack), score),
                        published_reidentification(scenario.paper, prior, attack.name, score)
                        if as_published
                        else None,
                    )
                    for score in IDENTITY_SCORES
                ]
                values += rows.baseline_values(name, description, threat.attack_name(attack))
        return values


def _threats(scenario: IdentityScenario) -> tuple[ThreatPlan, ...]:
    attacks = tuple(
        one
        for source in UPDATE_SOURCES
        for one in (
            *build_identity_attacks(scenario, source),
            build_wccn_attack(scenario, source, is_linking=False),
        )
    )
    return (threat_per_update(attacks), threat_per_sender(attacks))
