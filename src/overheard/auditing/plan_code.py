"""The code that the runs, simulations and cells of a plan, and results from them, depend on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from overheard.core.attack import Attack
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.plans.source_code import code_digest, file_digests, simulation_digest

TRAINING_MODULES = ("overheard.auditing.simulate", "overheard.federation.run")

ATTACK_MODULES = ("overheard.auditing.attack_runner", *TRAINING_MODULES)


@final
@dataclass(frozen=True, slots=True)
class AttackCode:
    """Digests of the code that an attack depends on in an arm.

    Args:
        of_cells: that of the attack's claims, as `cell_code`.
        of_simulations: that of the attack's simulations, as `simulation_code`.

    """

    of_cells: str
    of_simulations: str


# Any: an attack answers a question of its own.
AttackCodes = Callable[[ThreatPlan, Attack[Any]], AttackCode]
"""Returns the digests of an attack's code under a threat, in one arm of a plan."""


def run_code(plan: Plan, arm: ArmPlan) -> Mapping[str, str]:
    """Return a digest of each file that the runs of an arm depend on, by module."""
    return file_digests(TRAINING_MODULES, _training_plugins(plan, arm))


def attack_codes(plan: Plan, arm: ArmPlan) -> AttackCodes:
    """Return a function that computes each digest once, for all runs of the arm.

    Make a new one for each audit, as code may be loaded again between audits.
    """
    found = dict[tuple[str, str], AttackCode]()

    def digests(threat: ThreatPlan, attack: Attack[Any]) -> AttackCode:
        # Somebody's attack may have no hash.
        key = (repr(threat), repr(attack))
        if key not in found:
            found[key] = AttackCode(
                cell_code(plan, arm, threat, attack), simulation_code(plan, arm, threat, attack)
            )
        return found[key]

    return digests


def cell_code(plan: Plan, arm: ArmPlan, threat: ThreatPlan, attack: Attack[Any]) -> str:
    """Return the digest of the code that an attack's claims in an arm depend on.

    The scorer is among it, as uninformed guesses are its own, and so is whether the question
    needs classes, without which the attack is refused.
    """
    question = question_of_attack(attack)
    plugins = (*_attack_plugins(plan, arm, threat, attack), question.scorer)
    code = code_digest(ATTACK_MODULES, plugins)
    return f"{code}, of classes" if question.needs_classes else code


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
