"""What a plugin's class states about it, in words: an attack's question, needs and training."""

from collections.abc import Iterable, Mapping
from typing import Any

from overheard.core.algorithm.algorithm import LEAK, Algorithm
from overheard.core.attack import Attack, TrainingSource
from overheard.core.defense import Defense
from overheard.core.mechanism import Site
from overheard.core.needs import NEEDS
from overheard.core.split import Split
from overheard.plans.registries import question_of_claim_type
from overheard.plans.schema.docstrings import read_description

_TRAINED_ON: Mapping[TrainingSource, str] = {
    "virtual clients": "updates of virtual clients, which the attacker trains by itself",
    "known users": "updates that the attacker simulates from prior examples of known users",
    "shadow models": "models that the attacker trains with and without candidate records",
    "shadow devices": "updates of shadow devices, which take part in the run",
    "none": "no updates of its own",
}

_ADAPTS: Mapping[TrainingSource, str] = {
    "virtual clients": "yes, to the defenses that it knows: it trains with them",
    "known users": "yes, to the defenses that it knows: it trains with them",
    "shadow models": "yes, to the defenses that it knows: it trains with them",
    "shadow devices": "where the arm defends shadow devices (`shadows_defended = true`)",
    "none": "no",
}

_COST: Mapping[TrainingSource, str] = {
    "virtual clients": "trains the virtual clients of its threat (`virtual.clients`) once "
    "for a run; all attacks of the run share them",
    "known users": "trains a client for each known user in each round that it reads",
    "shadow models": "trains its shadow models in each round that it reads",
    "shadow devices": "trains a client for each known user in the run itself",
    "none": "trains no clients",
}

_ENFORCED_AT: Mapping[Site, str] = {
    "client": "each client",
    "server": "the server",
    "protocol": "the protocol between clients and server",
}


# Any: a plugin is a class of any registry.
def plugin_facts(plugin: type[Any]) -> Mapping[str, str]:
    """Return what a plugin states of itself, each fact under its heading.

    Facts that depend on settings are those of the default settings. Its source is not among
    them.
    """
    if issubclass(plugin, Attack):
        return _attack_facts(plugin)
    if issubclass(plugin, Defense):
        return _defense_facts(plugin)
    if issubclass(plugin, Algorithm):
        return _algorithm_facts(plugin)
    if issubclass(plugin, Split) and plugin.has_one_user_per_client:
        return {"Clients": "each holds examples of one user only, so data must name users"}
    return {}


def _attack_facts(plugin: type[Attack[Any]]) -> Mapping[str, str]:
    attack = plugin()
    question = question_of_claim_type(plugin.claim_type, plugin.name)
    needs = [need for need in NEEDS if need in plugin.needs]
    needs += sorted(plugin.needs.difference(NEEDS), key=lambda need: need.description)
    source = attack.training_source()
    adapts = _ADAPTS[source]
    if source == "none" and (parts := attack.used_training_parts()):
        adapts = f"to known defenses that change a client's {_listed(parts)}"
    return {
        "Question": f"`{question.name}`: {read_description(type(question))}",
        "Needs": "; ".join(need.description for need in needs) or "nothing",
        "Trained on": _TRAINED_ON[source],
        "Adapts to defenses": adapts,
        "Cost": _COST[source],
    }


def _algorithm_facts(plugin: type[Algorithm]) -> Mapping[str, str]:
    paragraphs = [" ".join(part.split()) for part in (plugin.__doc__ or "").split("\n\n")]
    leak = next((part for part in paragraphs if part.startswith(LEAK)), "")
    return {"Reveals, compared with FedAvg": leak.removeprefix(LEAK).strip()}


def _listed(parts: Iterable[str]) -> str:
    """Return the names as "a, b or c"."""
    *others, last = sorted(parts)
    return f"{', '.join(others)} or {last}" if others else last


def _defense_facts(plugin: type[Defense]) -> Mapping[str, str]:
    changed = {
        "data": plugin.on_data is not Defense.on_data,
        "local training": bool(plugin.changes_training),
        "updates": plugin.on_update is not Defense.on_update,
        "the aggregate": plugin.on_aggregate is not Defense.on_aggregate,
        "who can read an update": plugin.masks_updates,
    }
    return {
        "Changes": ", ".join(name for name, is_changed in changed.items() if is_changed),
        "Applied by": _ENFORCED_AT[plugin.enforced_at],
        "Could be skipped by": plugin.switched_off_by,
        "Noise with an epsilon": "no" if plugin().mechanism() is None else "yes",
    }
