"""The installed packages whose plugins a plan uses."""

from collections.abc import Iterator, Mapping
from typing import Any

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
    for registry, plugin in _parts(plan):
        origin = registry.origin(plugin.name) if plugin is not None else None
        # An object made in Python may have the name of an installed plugin of another class.
        if origin is not None and registry.plugins()[plugin.name] is type(plugin):
            yield origin
    for threat in plan.threats:
        for attack in threat.attacks:
            name = question_of_attack(attack).name
            origin = QUESTIONS.origin(name) or SCORERS.origin(name)
            if origin is not None:
                yield origin


# Any: each registry has plugins of its own type.
def _parts(plan: Plan) -> Iterator[tuple[PluginRegistry[Any], Any]]:
    yield DATASETS, plan.data.source
    yield SPLITS, plan.data.split
    yield MODELS, plan.training.model
    yield ALGORITHMS, plan.training.algorithm
    for arm in plan.arms:
        yield ALGORITHMS, arm.algorithm
        yield DISTILLATIONS, arm.distillation
        yield from ((DEFENSES, defense) for defense in arm.defenses)
    for threat in plan.threats:
        yield DATASETS, threat.auxiliary_from
        yield from ((SPLITS, split) for split in threat.virtual.splits)
        yield from ((ATTACKS, attack) for attack in threat.attacks)
