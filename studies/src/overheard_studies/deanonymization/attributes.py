"""Table 4: attributes and identity of the sender, inferred singly and jointly."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from overheard.core.attack import Attack
from overheard.learning.models.mlp import Mlp
from overheard.linkage.attribute_labels import LabelledUsers
from overheard.plans.plan import Plan
from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
from overheard.questions.identity.attacks.reidentify_jointly import ReidentifyJointly
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import build_published_attack
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_attribute_accuracy
from overheard_studies.deanonymization.result_rows import ResultRows, build_result_rows
from overheard_studies.deanonymization.scenarios import BLOGS, OMNIGLOT, IdentityScenario
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns


@final
@dataclass(frozen=True, slots=True)
class AttributePanel:
    """A data set and the attributes of its users that are inferred.

    Args:
        scenario: scenario with the users.
        attributes: names of the attributes.
        holdout: number of users who do not take part. Attributes are learned from them if the
            server knows no attribute of a participant.

    """

    scenario: IdentityScenario
    attributes: tuple[str, ...]
    holdout: int


PANELS = (
    AttributePanel(BLOGS, ("gender", "age_group"), 29),
    AttributePanel(OMNIGLOT, ("alphabet",), 40),
)

QUICK_PANEL = AttributePanel(
    replace(OMNIGLOT, model=Mlp(), rounds=8, seeds=(0,)),
    ("alphabet",),
    40,
)


@final
@dataclass(frozen=True, slots=True)
class AttributesExperiment(Experiment):
    """Single and joint heads, trained with attributes of all users or of holdout users only.

    Args:
        panels: data sets and attributes.
        reduced: the same for a quick run.
        name: name of the table.

    """

    panels: tuple[AttributePanel, ...] = PANELS
    reduced: tuple[AttributePanel, ...] = (QUICK_PANEL,)
    name: str = "table4"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "Attributes and identity of the sender, inferred singly and jointly"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(one.scenario for one in self.panels)} The paper's attributes "
            "are those of "
            "people on PIPA's photos (age, gender, glasses, hair). Here they are those of "
            "bloggers (gender, age group) and drawers (alphabet, which the labels reveal). "
            "Published values are shown for age and gender. As in the paper, the server knows "
            "the attributes of the users that it attacks, so recognizing a user is enough. A "
            "second setting reports the accuracy on users whose attributes the server does "
            "not know; it learns from holdout users, as many as the folder name says. Shadow "
            "devices provide the known updates."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan in which all users are known and one with unknown users."""
        plans = {}
        for one in self.reduced if quick else self.panels:
            scenario, known = one.scenario, tuple(map(str, one.attributes))
            identity_attacks: tuple[Attack[Any], ...] = (
                build_published_attack(scenario, "shadow"),
            )
            attribute_attacks = tuple(
                attack
                for attribute in known
                for attack in (
                    _attribute_attack(scenario, attribute, False, "everyone"),
                    _attribute_attack(scenario, attribute, True, "everyone"),
                    ReidentifyJointly(attribute, updates="shadow", layer=scenario.layer),
                )
            )
            plans[f"{scenario.key}_known"] = build_plan(
                scenario,
                build_known_user_settings("random"),
                (threat_per_update((*identity_attacks, *attribute_attacks)),),
            )
            plans[f"{scenario.key}_strangers"] = build_plan(
                scenario,
                build_known_user_settings("random", holdout=one.holdout),
                (
                    threat_per_update(
                        tuple(
                            _attribute_attack(scenario, attribute, is_joint, "holdout")
                            for attribute in known
                            for is_joint in (False, True)
                        )
                    ),
                ),
                clients=scenario.clients - one.holdout,
            )
        return plans

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return top-1 accuracies and means over attribute values."""
        full = self.plans(quick=False)
        values: list[ReproducedValue] = []
        for one in self.panels:
            for kind in ("known", "strangers"):
                key = f"{one.scenario.key}_{kind}"
                if key in runs.audits:
                    run = runs.plans[key]
                    context = describe_setting(one.scenario, run, full.get(key))
                    values += _read_threat(
                        build_result_rows(runs.audits[key]), key, run, context
                    )
        return tuple(values)


def _attribute_attack(
    scenario: IdentityScenario, attribute: str, is_joint: bool, training_users: LabelledUsers
) -> AttributeMlp:
    return AttributeMlp(
        attribute, jointly=is_joint, told=training_users, updates="shadow", layer=scenario.layer
    )


def _read_threat(rows: ResultRows, key: str, run: Plan, context: str) -> list[ReproducedValue]:
    threat, values = run.threats[0], list[ReproducedValue]()
    for attack in threat.attacks:
        name = threat.attack_name(attack)
        match attack:
            case AttributeMlp(attribute=str(attribute), jointly=is_joint):
                cell = f"attribute_{'joint' if is_joint else 'single'}"
                as_published = attack.told == "everyone"
                values += [
                    rows.reproduced_value(
                        f"{key}_{attribute}_{cell}",
                        f"{context}; {attribute}, {cell.replace('_', ' ')}, accuracy",
                        (name, "accuracy"),
                        published_attribute_accuracy(attribute, cell) if as_published else None,
                    ),
                    rows.reproduced_value(
                        f"{key}_{attribute}_{cell}_balanced",
                        f"{context}; {attribute}, {cell.replace('_', ' ')}, mean over values",
                        (name, "balanced_accuracy"),
                    ),
                ]
                row = rows.find(name, "accuracy")
                if not is_joint and row is not None and row.blind is not None:
                    values.append(
                        ReproducedValue(
                            f"{key}_{attribute}_blind",
                            f"{context}; {attribute}, the best uninformed guess",
                            row.blind,
                            None,
                            None,
                            None,
                            None,
                        )
                    )
            case ReidentifyJointly(attribute=str(attribute)):
                values.append(
                    rows.reproduced_value(
                        f"{key}_{attribute}_identity_joint",
                        f"{context}; identity, jointly with {attribute}, top-1",
                        (name, "top1"),
                        published_attribute_accuracy(attribute, "identity_joint"),
                    )
                )
            case _:
                values.append(
                    rows.reproduced_value(
                        f"{key}_identity_single",
                        f"{context}; identity alone, top-1",
                        (name, "top1"),
                        published_attribute_accuracy("identity", "identity_single"),
                    )
                )
    return values
