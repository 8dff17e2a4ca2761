"""What the threats of a plan grant to attackers, in words."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from overheard.findings.names import make_printable

KNOWLEDGE = {
    "auxiliary": "labelled examples of the same task",
    "model": "the architecture of the model",
    "recipe": "how clients train",
    "defenses": "which defenses are active",
}
"""What a threat of a plan may grant, in words."""


# Any: the values of a TOML table.
def planned_threats(plan: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of the threats; none if the text is no plan."""
    try:
        threats = tomllib.loads(plan).get("threats", [])
    except (ValueError, RecursionError):
        return
    for threat in threats if isinstance(threats, list) else []:
        if isinstance(threat, Mapping):
            yield threat


def granted_knowledge(plan: str) -> Iterator[tuple[str, ...]]:
    """Yield what each threat grants, in words; none if the text is no plan."""
    for threat in planned_threats(plan):
        yield known_words(threat.get("knows"))


def known_words(knows: object) -> tuple[str, ...]:
    """Return what a threat grants, in words."""
    return tuple(KNOWLEDGE.get(one, make_printable(one)) for one in texts_in(knows))


def texts_in(value: object) -> list[str]:
    """Return the texts in a list from outside; () for anything else."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
