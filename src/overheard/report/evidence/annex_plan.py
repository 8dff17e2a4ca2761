"""What a plan says of its threats: who observes, what they know, and which attacks run."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.threat_verdict import TargetKind


@final
@dataclass(frozen=True, slots=True)
class PlannedThreat:
    """A threat, as the text of a plan states it; the texts are not printable yet.

    Args:
        observers: names of the observers.
        about: whether the targets are single clients or the cohort.
        knows: what the observers know beforehand.
        attacks: names of the attacks; () = the text states none.
        has_new_names: whether senders have a new name in each round.

    """

    observers: tuple[str, ...]
    about: TargetKind
    knows: tuple[str, ...]
    attacks: tuple[str, ...]
    has_new_names: bool


def planned_threats(plan: str) -> Iterator[PlannedThreat]:
    """Yield the threats of a plan; none if the text is no plan."""
    try:
        threats = tomllib.loads(plan).get("threats", [])
    except (ValueError, RecursionError):
        return
    for threat in threats if isinstance(threats, list) else []:
        if isinstance(threat, Mapping):
            yield PlannedThreat(
                _texts(threat.get("observers")),
                "cohort" if threat.get("about") == "cohort" else "clients",
                _texts(threat.get("knows")),
                _attacks(threat.get("attacks")),
                threat.get("pseudonyms") == "round",
            )


def _texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else []
    return tuple(one for one in values if isinstance(one, str))


def _attacks(value: object) -> tuple[str, ...]:
    """Return the names of attacks, each a text or the kind in a table of settings."""
    values = value if isinstance(value, list) else []
    return _texts([one.get("kind") if isinstance(one, Mapping) else one for one in values])
