"""The code and data that runs, simulations and cells of a plan depend on, and their results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, final

from overheard.core.attack import Attack
from overheard.data.dataset import DataSource
from overheard.disk.digests import mark_of_trust, sha256_of
from overheard.findings.question import Question
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.plans.source_code import code_digest, file_digests, simulation_digest

TRAINING_MODULES = ("overheard.auditing.simulate", "overheard.federation.run")

ATTACK_MODULES = ("overheard.auditing.attack_runner", *TRAINING_MODULES)


@final
@dataclass(frozen=True, slots=True)
class AttackCode:
    """Digests of the code and the data that an attack depends on in an arm.

    Args:
        of_cells: of the attack's claims: of `cell_code`, data, recording and plan.
        of_simulations: of the attack's simulations: of `simulation_code` and data.

    Both end in `disk.digests.NOT_COMPARED` if the store is trusted.

    """

    of_cells: str
    of_simulations: str


# Any: an attack answers a question of its own.
AttackCodes = Callable[[ThreatPlan, Attack[Any]], AttackCode]
"""Returns the digests of an attack's code under a threat, in one arm of a plan."""

DATA = "data "
"""What an origin's names of data begin with; its other names are those of modules."""


def run_origin(plan: Plan, arm: ArmPlan, data: Mapping[str, str]) -> Mapping[str, str]:
    """Return digests of all that the runs of an arm depend on: code by module, data by name.

    Args:
        plan: the plan.
        arm: the arm.
        data: the digest of the plan's data set, by its name.

    """
    plugins = tuple(_training_plugins(plan, arm))
    named = {**data, **_named_files(plugins)}
    return {
        **file_digests(TRAINING_MODULES, plugins),
        **{f"{DATA}{name}": digest for name, digest in named.items()},
    }


def attack_codes(plan: Plan, arm: ArmPlan, data: str, recording: str = "") -> AttackCodes:
    """Return a function that computes each digest once, for all runs of the arm.

    Make a new one for each audit, as code may be loaded again between audits.

    Args:
        plan: the plan.
        arm: the arm.
        data: a digest of all data sets of the plan.
        recording: a digest of the messages of the recording; "" = the run is simulated.

    """
    found = dict[tuple[str, str], AttackCode]()
    settings = plan.without_release().model_copy(update={"seeds": (), "arms": (arm,)}).toml()
    run = blake2b(repr((data, recording, settings)).encode(), digest_size=12).hexdigest()
    mark = mark_of_trust()

    def digests(threat: ThreatPlan, attack: Attack[Any]) -> AttackCode:
        # Somebody's attack may have no hash.
        key = (repr(threat), repr(attack))
        if key not in found:
            found[key] = AttackCode(
                f"{cell_code(plan, arm, threat, attack)}, run {run}{mark}",
                f"{simulation_code(plan, arm, threat, attack)}, data {data}{mark}",
            )
        return found[key]

    return digests


def cell_code(plan: Plan, arm: ArmPlan, threat: ThreatPlan, attack: Attack[Any]) -> str:
    """Return the digest of the code that an attack's claims in an arm depend on.

    The scorer is among it, as uninformed guesses are its own, and so are a question that makes
    facts for its attackers, and whether it needs classes, without which the attack is refused.
    """
    question = question_of_attack(attack)
    makes_facts = type(question).make_facts is not Question.make_facts
    plugins = (
        *_attack_plugins(plan, arm, threat, attack),
        question.scorer,
        question if makes_facts else None,
    )
    code = code_digest(ATTACK_MODULES, plugins)
    files = _named_files(plugins)
    named = ", ".join([code, *(f"{digest} of {name}" for name, digest in files.items())])
    return f"{named}, of classes" if question.needs_classes else named


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


def _named_files(plugins: Iterable[object]) -> Mapping[str, str]:
    """Return the SHA-256 of each file that a setting of a plugin names, by the setting.

    The file of a data source is left out: it counts by what was read of it.
    """
    found = dict[str, str]()
    for plugin in plugins:
        if isinstance(plugin, DataSource) or not is_dataclass(plugin):
            continue
        for setting in (getattr(plugin, one.name) for one in fields(plugin)):
            if isinstance(setting, str) and _is_file(setting):
                found[setting] = sha256_of(Path(setting))
    return found


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # no text that can be a path
        return False


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
