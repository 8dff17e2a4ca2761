"""What a plan says of its threats: who observes, what they know, and which attacks run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.threat_verdict import TargetKind
from overheard.report.evidence.granted_knowledge import (
    known_words,
    planned_threats,
    texts_in,
)


@final
@dataclass(frozen=True, slots=True)
class PlannedThreat:
    """A threat, as the text of a plan states it; names are not printable yet.

    Args:
        observers: names of the observers.
        about: whether the targets are single clients or the cohort.
        knows: what the observers know beforehand, in words.
        attacks: names of the attacks; () = the text states none.
        has_new_names: whether senders have a new name in each round.

    """

    observers: tuple[str, ...]
    about: TargetKind
    knows: tuple[str, ...]
    attacks: tuple[str, ...]
    has_new_names: bool


def read_threats(plan: str) -> Iterator[PlannedThreat]:
    """Yield the threats of a plan; none if the text is no plan."""
    for threat in planned_threats(plan):
        yield PlannedThreat(
            tuple(texts_in(threat.get("observers"))),
            "cohort" if threat.get("about") == "cohort" else "clients",
            known_words(threat.get("knows")),
            _attacks(threat.get("attacks")),
            threat.get("pseudonyms") == "round",
        )


def _attacks(value: object) -> tuple[str, ...]:
    """Return the names of attacks, each a text or the kind in a table of settings."""
    values = value if isinstance(value, list) else []
    names = [one.get("kind") if isinstance(one, Mapping) else one for one in values]
    return tuple(texts_in(names))
