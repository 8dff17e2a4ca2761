"""Table 4 and cross-modal matching: attributes, and users known in another modality."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.metrics import average_precision_score

from overheard.core.attack import Attack
from overheard.data.datasets.wisdm import Wisdm
from overheard.findings.audit import Audit
from overheard.learning.models.mlp import Mlp
from overheard.linkage.attribute_labels import LabelledUsers
from overheard.plans.plan import Plan
from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
from overheard.questions.identity.attacks.match import MatchCrossModal
from overheard.questions.identity.attacks.reidentify import ReidentifyJointly
from overheard.questions.identity.statistics.ranking import build_matches, build_rankings
from overheard.statistics.estimate import Estimate
from overheard.statistics.roc import ScoredPairs
from overheard_studies.deanonymization.measures import mean_over_seeds
from overheard_studies.deanonymization.setting import (
    BLOGS,
    OMNIGLOT,
    PRECISION,
    PUBLISHED,
    QUICK_BLOGS,
    QUICK_WISDM,
    WISDM,
    IdentityScenario,
    ResultRows,
    build_known_user_settings,
    build_panel,
    build_plan,
    build_published_attack,
    build_threat,
    describe_differences,
    describe_setting,
    find_scenario,
)
from overheard_studies.deanonymization.studies import (
    HOLDOUT_DIVISOR,
    Scenarios,
    Varied,
    build_panels,
    spoken,
)
from overheard_studies.study import PanelRun, Study
from overheard_studies.values import ReproducedValue

TrainingUsers = Literal["holdout", "everyone"]


ONE_AXIS, QUICK_ONE_AXIS = (
    replace(one, source=Wisdm(axes="x")) for one in (WISDM, QUICK_WISDM)
)


TRAINING_USERS: tuple[TrainingUsers, ...] = ("everyone", "holdout")


def cross_modal(
    scenarios: Scenarios = (BLOGS, ONE_AXIS), reduced: Scenarios = (QUICK_BLOGS, QUICK_ONE_AXIS)
) -> Study:
    """Return matching of updates of one modality with known data of users in another."""

    def plan(scenario: IdentityScenario) -> Plan:
        holdout = scenario.clients // HOLDOUT_DIVISOR
        attacks = tuple(
            MatchCrossModal(
                updates="shadow",
                layer=scenario.layer,
                learn_from=learned,
                most_rounds=scenario.most_rounds,
            )
            for learned in TRAINING_USERS
        )
        known = build_known_user_settings("random", holdout=holdout)
        clients = scenario.clients - holdout
        return build_plan(scenario, known, (build_threat(attacks),), clients=clients)

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,) = ResultRows.of(one), one.plan.threats
        published = PUBLISHED.number("text", "cross_modal_precision")
        for attack, learned in zip(threat.attacks, TRAINING_USERS, strict=True):
            name, label = f"{one.key}_{learned}", threat.attack_name(attack)
            words = f"trained on {learned}: "
            for is_control, suffix in ((False, ""), (True, "_iid_control")):
                value = _balanced(one.audit, label, is_control)
                if value is not None:
                    yield one.value(
                        f"{name}_balanced{suffix}",
                        f"{words}average precision of balanced pairs{spoken(suffix)} "
                        "(published: PIPA)",
                        value,
                        None if is_control else published,
                        None if is_control else "higher",
                    )
            for score in ("matching_auc", PRECISION, "times_chance"):
                yield rows.value(f"{name}_{score}", words + spoken(score), (label, score))

    return Study(
        "cross_modal",
        "Which user sent an update, from known data in another modality",
        describe_differences(scenarios, "cross_modal"),
        build_panels(scenarios, reduced, plan, read),
        describe_setting,
    )


def balanced_precision(pairs: ScoredPairs) -> float:
    """Return the average precision, with equal total weight of true and false pairs."""
    true = pairs.is_same_user.sum()
    weights = np.where(pairs.is_same_user, 1.0, true / (~pairs.is_same_user).sum())
    return float(
        average_precision_score(pairs.is_same_user, pairs.scores, sample_weight=weights)
    )


def _balanced(audit: Audit, attack: str, is_control: bool) -> Estimate | None:
    findings = [
        one
        for one in audit.findings
        if (one.cell.attack, one.cell.is_control) == (attack, is_control)
    ]
    values = [
        balanced_precision(pairs)
        for pairs in map(build_matches, build_rankings(findings))
        if pairs.has_both_kinds
    ]
    return mean_over_seeds(values) if values else None


def attributes(
    panels: tuple[Varied, ...] = (
        Varied(BLOGS, {"gender": 29, "age_group": 29}),
        Varied(OMNIGLOT, {"alphabet": 40}),
    ),
    reduced: tuple[Varied, ...] = (
        Varied(QUICK_BLOGS, {"gender": 12, "age_group": 12}),
        Varied(replace(OMNIGLOT, model=Mlp(), rounds=8, seeds=(0,)), {"alphabet": 40}),
    ),
) -> Study:
    """Return Table 4: attributes and identity of the sender, inferred singly and jointly.

    Attributes are learned from all users, or from holdout users who do not take part.

    Args:
        panels: data sets; the variants are attributes with the number of holdout users.
        reduced: the same for a quick run.

    """

    def plan(panel: Varied, is_known: bool, scenario: IdentityScenario) -> Plan:
        told: LabelledUsers = "everyone" if is_known else "holdout"
        names = tuple(map(str, panel.variants))
        attacks = list[Attack[Any]]()
        if is_known:
            attacks.append(build_published_attack(scenario, "shadow"))
        for attribute in names:
            attacks += [
                AttributeMlp(
                    attribute,
                    jointly=joint,
                    told=told,
                    updates="shadow",
                    layer=scenario.layer,
                    steps=scenario.steps,
                )
                for joint in (False, True)
            ]
            if is_known:
                attacks.append(
                    ReidentifyJointly(
                        attribute, updates="shadow", layer=scenario.layer, steps=scenario.steps
                    )
                )
        holdout = 0 if is_known else max(panel.variants.values())
        known = build_known_user_settings("random", holdout=holdout)
        clients = scenario.clients - holdout if holdout else None
        threat = build_threat(tuple(attacks))
        return build_plan(scenario, known, (threat,), clients=clients)

    quick = [one.scenario for one in reduced]
    return Study(
        "table4",
        "Attributes and identity of the sender, inferred singly and jointly",
        describe_differences((one.scenario for one in panels), "table4"),
        tuple(
            build_panel(
                f"{one.key}_{'known' if is_known else 'strangers'}",
                one.scenario,
                find_scenario(quick, one.key),
                partial(plan, one, is_known),
                _read_attributes,
            )
            for one in panels
            for is_known in (True, False)
        ),
        describe_setting,
    )


def _read_attributes(one: PanelRun) -> Iterator[ReproducedValue]:
    rows, threat, key = ResultRows.of(one), one.plan.threats[0], one.key
    for attack in threat.attacks:
        label = threat.attack_name(attack)
        match attack:
            case AttributeMlp(attribute=str(attribute), jointly=is_joint):
                cell = f"attribute_{'joint' if is_joint else 'single'}"
                name, words = f"{key}_{attribute}_{cell}", f"{attribute}, {spoken(cell)}, "
                told_all = attack.told == "everyone"
                published = PUBLISHED.number("table4", attribute, cell) if told_all else None
                yield rows.value(name, f"{words}accuracy", (label, "accuracy"), published)
                place = label, "balanced_accuracy"
                yield rows.value(f"{name}_balanced", f"{words}mean over values", place)
                row = rows.find(label, "accuracy")
                if not is_joint and row is not None and row.best_uninformed is not None:
                    described = f"{attribute}, the best uninformed guess"
                    yield one.value(f"{key}_{attribute}_blind", described, row.best_uninformed)
            case ReidentifyJointly(attribute=str(attribute)):
                published = PUBLISHED.number("table4", attribute, "identity_joint")
                words = f"identity, jointly with {attribute}, top-1"
                name = f"{key}_{attribute}_identity_joint"
                yield rows.value(name, words, (label, "top1"), published)
            case _:
                published = PUBLISHED.number("table4", "identity", "identity_single")
                words, name = "identity alone, top-1", f"{key}_identity_single"
                yield rows.value(name, words, (label, "top1"), published)
