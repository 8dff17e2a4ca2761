"""The code that the runs, simulations and cells of a plan, and results from them, depend on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from overheard.core.attack import Attack
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.plans.source_code import code_digest, file_digests, simulation_digest

TRAINING_MODULES = ("overheard.auditing.simulate", "overheard.federation.run")

SCORING_MODULES = ("overheard.auditing.attack_runner", *TRAINING_MODULES)


def run_code(plan: Plan, arm: ArmPlan) -> Mapping[str, str]:
    """Return a digest of each file that the runs of an arm depend on, by module."""
    return file_digests(TRAINING_MODULES, _training_plugins(plan, arm))


# Any: an attack answers a question of its own.
def cell_code(plan: Plan, arm: ArmPlan, threat: ThreatPlan, attack: Attack[Any]) -> str:
    """Return the digest of the code that an attack's findings in an arm depend on."""
    question = question_of_attack(attack)
    plugins = (*_attack_plugins(plan, arm, threat, attack), question, question.scorer)
    return code_digest(SCORING_MODULES, plugins)


def describe_origin(plans: Sequence[Plan], module: str) -> str:
    """Return the plans and a digest of code: what a module's results from their runs depend on.

    Args:
        plans: the plans of the runs, with their seeds.
        module: dotted name of the module that computes the results.

    """
    plugins = (
        one for plan in plans for arm in plan.arms for one in _training_plugins(plan, arm)
    )
    code = code_digest((module, *TRAINING_MODULES), plugins)
    return "\n".join([f"# code {code}", *(plan.toml() for plan in plans)])


def simulation_code(plan: Plan, arm: ArmPlan, threat: ThreatPlan, attack: Attack[Any]) -> str:
    """Return the digest of the code that an attack's simulations in an arm depend on."""
    return simulation_digest(_attack_plugins(plan, arm, threat, attack))


def _attack_plugins(
    plan: Plan, arm: ArmPlan, threat: ThreatPlan, attack: Attack[Any]
) -> Iterator[object]:
    yield from _training_plugins(plan, arm)
    yield threat.auxiliary_from
    yield from threat.virtual.splits
    yield attack


def _training_plugins(plan: Plan, arm: ArmPlan) -> Iterator[object]:
    yield from (plan.data.source, plan.data.split, plan.training.model)
    yield from (*arm.defenses, arm.distillation, plan.algorithm_of(arm))
