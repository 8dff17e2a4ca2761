"""The IID control of section 6.1.1: users' examples are redistributed at random."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.score_row import CONTROL_NAME
from overheard.plans.plan import Plan
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import (
    UPDATE_SOURCES,
    build_published_attack,
)
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_in_text
from overheard_studies.deanonymization.result_rows import (
    PRECISION,
    build_result_rows,
    value_without_interval,
)
from overheard_studies.deanonymization.scenarios import (
    BLOGS,
    QUICK_SCENARIO,
    WISDM,
    IdentityScenario,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

NULL_QUANTILES = ("null 2.5 %", "null 97.5 %")


@final
@dataclass(frozen=True, slots=True)
class IidExperiment(Experiment):
    """The published attack on the IID control of each data set.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        name: name of the experiment.

    """

    scenarios: tuple[IdentityScenario, ...] = (BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    name: str = "iid"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Re-identification when examples are redistributed at random among all users"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The paper gives one value, 1.5 times chance "
            "on PIPA, with "
            "chance 1 / users. Here the control is compared with a random order and with a "
            "permutation control that permutes identities, all updates of a client together. "
            "The prior examples are random ones and stay the same: only private examples are "
            "redistributed."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set; each of its runs has a control run."""
        return {
            scenario.key: build_plan(
                scenario,
                build_known_user_settings("random"),
                (
                    threat_per_update(
                        tuple(
                            build_published_attack(scenario, source)
                            for source in UPDATE_SOURCES
                        )
                    ),
                ),
            )
            for scenario in (self.reduced if quick else self.scenarios)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the control's precision, its times chance and the permutation interval."""
        full, values = self.plans(quick=False), list[ReproducedValue]()
        for scenario in self.scenarios:
            if (key := scenario.key) not in runs.audits:
                continue
            rows, run = build_result_rows(runs.audits[key]), runs.plans[key]
            context = describe_setting(scenario, run, full.get(key))
            (threat,) = run.threats
            for attack, source in zip(threat.attacks, UPDATE_SOURCES, strict=True):
                name, description = f"{key}_{source}", f"{context}; {source} updates"
                attack_name = threat.attack_name(attack)
                values.append(
                    rows.reproduced_value(
                        f"{name}_control",
                        f"{description}: average precision of the IID control",
                        (attack_name, "control_excess"),
                    )
                )
                excess, row = (
                    rows.find(attack_name, "control_excess"),
                    rows.find(attack_name, PRECISION),
                )
                if excess is None or row is None or not row.blind:
                    continue
                values += [
                    ReproducedValue(
                        f"{name}_times_chance",
                        f"{description}: IID control divided by a random order (published: "
                        "PIPA)",
                        row.references[CONTROL_NAME] / row.blind,
                        None,
                        None,
                        published_in_text("iid_times_chance") if source == "shadow" else None,
                        "higher",
                    ),
                    *(
                        value_without_interval(
                            f"{name}_{end.split()[0]}_{side}",
                            f"{description}: {side} end of the 95 % permutation interval",
                            excess.references[end],
                        )
                        for end, side in zip(NULL_QUANTILES, ("low", "high"), strict=True)
                    ),
                    rows.reproduced_value(
                        f"{name}_as_they_are",
                        f"{description}: average precision of the original users",
                        (attack_name, PRECISION),
                    ),
                ]
        return tuple(values)
