"""The installed packages whose plugins a plan uses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

from overheard.core.plugin_registry import PluginOrigin, PluginRegistry
from overheard.plans.plan import Plan
from overheard.plans.registries import (
    ALGORITHMS,
    ATTACKS,
    DATASETS,
    DEFENSES,
    DISTILLATIONS,
    MODELS,
    QUESTIONS,
    SCORERS,
    SPLITS,
    question_of_attack,
)


def plugin_packages(plan: Plan) -> Mapping[str, str]:
    """Return the version of each package by name, in alphabetical order.

    Packages of questions that the plan's attacks answer are included; Overheard itself is not.
    """
    origins = sorted(set(_origins(plan)), key=lambda origin: origin.name)
    return {origin.name: origin.version for origin in origins}


def _origins(plan: Plan) -> Iterator[PluginOrigin]:
    yield from (part.origin for part in plan_parts(plan) if part.origin is not None)
    for threat in plan.threats:
        for attack in threat.attacks:
            name = question_of_attack(attack).name
            origin = QUESTIONS.origin(name) or SCORERS.origin(name)
            if origin is not None:
                yield origin


@final
@dataclass(frozen=True, slots=True)
class PlanPart:
    """A plugin of a plan.

    Args:
        place: where it is in the plan, such as "arms.0.algorithm".
        plugin: the plugin.
        origin: the installed package that it comes from; None = Overheard itself, or a class of
            a script.

    """

    place: str
    plugin: object
    origin: PluginOrigin | None


def plan_parts(plan: Plan) -> Iterator[PlanPart]:
    """Yield every plugin of a plan."""
    for place, registry, plugin in _placed_plugins(plan):
        if plugin is None:
            continue
        origin = registry.origin(plugin.name)
        # An object made in Python may have the name of an installed plugin of another class.
        is_installed = origin is not None and registry.plugins()[plugin.name] is type(plugin)
        yield PlanPart(place, plugin, origin if is_installed else None)


# Any: each registry has plugins of its own type.
def _placed_plugins(plan: Plan) -> Iterator[tuple[str, PluginRegistry[Any], Any]]:
    yield "data.source", DATASETS, plan.data.source
    yield "data.split", SPLITS, plan.data.split
    yield "training.model", MODELS, plan.training.model
    yield "training.algorithm", ALGORITHMS, plan.training.algorithm
    for number, arm in enumerate(plan.arms):
        place = f"arms.{number}"
        yield f"{place}.algorithm", ALGORITHMS, arm.algorithm
        yield f"{place}.distillation", DISTILLATIONS, arm.distillation
        for one, defense in enumerate(arm.defenses):
            yield f"{place}.defenses.{one}", DEFENSES, defense
    for number, threat in enumerate(plan.threats):
        place = f"threats.{number}"
        yield f"{place}.auxiliary_from", DATASETS, threat.auxiliary_from
        for one, split in enumerate(threat.virtual.splits):
            yield f"{place}.virtual.splits.{one}", SPLITS, split
        for one, attack in enumerate(threat.attacks):
            yield f"{place}.attacks.{one}", ATTACKS, attack
