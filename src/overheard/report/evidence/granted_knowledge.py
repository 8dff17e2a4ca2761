"""What the threats of a plan grant to attackers, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from overheard.core.errors import FindingsError
from overheard.disk.reading import parse_toml
from overheard.findings.names import make_printable

KNOWLEDGE = {
    "auxiliary": "labelled examples of the same task",
    "model": "the architecture of the model",
    "recipe": "how clients train",
    "defenses": "which defenses are active",
    "cohorts": "who took part in each round",
}
"""What a threat of a plan may grant, in words."""


def attacker_knowledge(plan: str) -> tuple[str, ...]:
    """Return what the threats of a plan grant, each thing once; () if the text is no plan."""
    known = [word for one in planned_threats(plan) for word in known_words(one.get("knows"))]
    return tuple(dict.fromkeys([*_prior_examples(plan), *known]))


# Any: the values of a TOML table.
def planned_threats(plan: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of the threats; none if the text is no plan."""
    threats = read_tables(plan).get("threats")
    for threat in threats if isinstance(threats, list) else []:
        if isinstance(threat, Mapping):
            yield threat


def _prior_examples(plan: str) -> Iterator[str]:
    """Yield the most of each user's examples that attackers have, if there are users."""
    data = read_tables(plan).get("data")
    users = data.get("people") if isinstance(data, Mapping) else None
    if isinstance(users, Mapping) and isinstance(users.get("share"), float):
        yield f"up to {users['share']:.0%} of each user's examples"


def read_tables(plan: str) -> Mapping[str, Any]:
    """Return the tables of a plan; none if the text is no plan."""
    try:
        return parse_toml(plan, "plan", FindingsError)
    except FindingsError:
        return {}


def known_words(knows: object) -> tuple[str, ...]:
    """Return what a threat grants, in words."""
    return tuple(KNOWLEDGE.get(one, make_printable(one)) for one in texts_in(knows))


def texts_in(value: object) -> list[str]:
    """Return the texts in a list from outside; none for anything else."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
