"""The search for the number of steps of the published network, on tuning seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from overheard.core.attack import Attack
from overheard.plans.plan import Plan
from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
from overheard.questions.identity.attacks.reidentify import ReidentifyJointly
from overheard_studies.deanonymization.setting import (
    BLOGS,
    QUICK_WISDM,
    UPDATE_SOURCES,
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
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import PanelRun, Study
from overheard_studies.values import ReproducedValue, make_value

COUNTS = (1000, 3000, 10_000)
"""The numbers of steps that are tried."""

LEAST_GAIN = 0.01
"""Gain of the share of right answers from which more steps are worth it."""

TUNED = (replace(WISDM, seeds=(100, 101, 102)), replace(BLOGS, seeds=(100, 101)))
"""No other study has these seeds. The users are the same, divided in another way."""

CHOSEN = "chosen_steps"


def choose_steps(right: Mapping[str, Sequence[float]]) -> int:
    """Return the smallest number of steps after which no network gains a point from more.

    The largest number is returned if none suffices.

    Args:
        right: the share of right first guesses of each network, by the numbers of `COUNTS`.

    >>> choose_steps({"mlp": (0.2, 0.5, 0.505), "joint": (0.3, 0.305, 0.3)})
    3000

    """
    gains = [[more - fewer for fewer, more in pairwise(shares)] for shares in right.values()]
    enough = [max(of_networks) < LEAST_GAIN for of_networks in zip(*gains, strict=True)]
    return COUNTS[enough.index(True)] if any(enough) else COUNTS[-1]


# Any: each attack has its own claim type.
def build_networks(scenario: IdentityScenario) -> Mapping[str, Attack[Any]]:
    """Return the attacks whose network is trained, by name."""
    if scenario.key != BLOGS.key:
        return {one: build_published_attack(scenario, one) for one in UPDATE_SOURCES}
    attribute = AttributeMlp(
        "gender",
        told="everyone",
        updates="shadow",
        layer=scenario.layer,
        most_rounds=scenario.most_rounds,
    )
    joint = ReidentifyJointly(
        "gender", updates="shadow", layer=scenario.layer, most_rounds=scenario.most_rounds
    )
    return {
        "identity": build_published_attack(scenario, "shadow"),
        "identity_joint": joint,
        "gender": attribute,
        "gender_joint": replace(attribute, jointly=True),
    }


def training_steps(
    scenarios: tuple[IdentityScenario, ...] = TUNED,
    reduced: IdentityScenario = QUICK_WISDM,
) -> Study:
    """Return the search: each network with each number of steps."""

    def networks(scenario: IdentityScenario) -> Iterator[tuple[str, int, Attack[Any]]]:
        for name, attack in build_networks(scenario).items():
            for steps in COUNTS:
                # Any: all of these attacks have the field.
                changed: Any = attack
                yield name, steps, replace(changed, steps=steps)

    def plan(scenario: IdentityScenario) -> Plan:
        threat = build_threat(tuple(attack for _, _, attack in networks(scenario)))
        return build_plan(scenario, build_known_user_settings("random"), (threat,))

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,) = ResultRows.of(one), one.plan.threats
        scenario = next(each for each in scenarios if each.key == one.key)
        for (name, steps, _), attack in zip(networks(scenario), threat.attacks, strict=True):
            score = "accuracy" if isinstance(attack, AttributeMlp) else "top1"
            words = f"{name}, {steps} steps: share of right first guesses"
            place = threat.attack_name(attack), score
            yield rows.value(f"{one.key}_{name}_{steps}", words, place)

    def choose(runs: StudyRuns) -> Iterator[ReproducedValue]:
        found = dict[str, list[float]]()
        for key in runs.audits:
            for value in read(PanelRun(runs, key, "")):
                found.setdefault(value.name.rpartition("_")[0], []).append(value.value or 0.0)
        words = "the smallest number of steps after which no network gains a point"
        yield make_value(CHOSEN, words, float(choose_steps(found)))

    return Study(
        "steps",
        "Number of steps of the published network, chosen on tuning seeds",
        describe_differences(scenarios, "steps"),
        tuple(
            build_panel(one.key, one, reduced if one.key == reduced.key else None, plan, read)
            for one in scenarios
        ),
        describe_setting,
        pooled=choose,
    )
