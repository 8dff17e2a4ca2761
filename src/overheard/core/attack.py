"""The contract of an attack."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from overheard.core.claims import Claim
from overheard.core.defense import Defense, TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import NEEDS, Need
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View

C = TypeVar("C", bound=Claim)

Rehearsal = Literal["virtual clients", "known users", "shadow devices", "none"]
"""On whose updates an attack learns before it claims.

"virtual clients", "known users": the attacker trains them itself, behind the defenses that it
knows. "shadow devices": they take part in the run, where the arm may defend them as it does
clients. "none": it learns from no updates of its own, or from such as no defense changed.
"""


class Attack(ABC, Generic[C]):
    """Turns what an observer read into a claim about each of some parties.

    A concrete attack is a final frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    answers: ClassVar[type[Claim]]
    needs: ClassVar[frozenset[Need]]
    source: ClassVar[str]
    """Where the idea comes from: authors, year, section or equation."""
    orderless: ClassVar[bool] = True
    """True if numbering the labels otherwise does no more than number its claim otherwise.

    False where a number is drawn for a place and not for a label, as the weights of a network
    over columns of labels are, or the make-up of virtual clients: its claims then come out
    anew, and are near to the same only as far as the method is any good.
    """

    def rehearsal(self) -> Rehearsal:
        """Tell on whose updates it learns, with these settings."""
        return "none"

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang, where it trains no clients.

        A known defense that changes one of these parts then changes its claims.
        """
        return frozenset()

    @abstractmethod
    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, C]:
        """Claim something about every target, from the view and the knowledge alone.

        All targets at once, so that work they share is done once; a claim about one target
        does not depend on which others are asked about.
        """


def missing_needs(
    attack: Attack[C], view: View, target: Party, knowledge: Knowledge
) -> tuple[str, ...]:
    """Name what the attack lacks in order to claim something about this target."""
    ours = [need for need in NEEDS if need in attack.needs]
    others = sorted(attack.needs.difference(NEEDS), key=lambda need: need.words)
    return tuple(
        need.words for need in (*ours, *others) if not need.is_met(view, target, knowledge)
    )


def check_needs(attack: Attack[C], view: View, target: Party, knowledge: Knowledge) -> None:
    """Raise `NeedsError`, naming each missing need, unless the attack can run here."""
    missing = missing_needs(attack, view, target, knowledge)
    if missing:
        raise NeedsError(f"{attack.name} on {target} needs {'; '.join(missing)}")


def adapts(
    attack: Attack[C],
    known: Sequence[Defense],
    in_force: Sequence[Defense],
    are_devices_defended: bool,
) -> bool:
    """Whether an attack adapts to the defenses in force, so that its claims change with them.

    Args:
        attack: with its settings.
        known: the defenses that the attacker knows.
        in_force: those of the run.
        are_devices_defended: whether shadow devices stand behind them too.

    """
    match attack.rehearsal():
        case "virtual clients" | "known users":
            return any(map(_acts_on_clients, known))
        case "shadow devices":
            return are_devices_defended and any(map(_acts_on_clients, in_force))
        case "none":
            return any(attack.uses_training() & defense.changes_training for defense in known)


def _acts_on_clients(defense: Defense) -> bool:
    kind = type(defense)
    return (
        bool(defense.changes_training)
        or kind.on_data is not Defense.on_data
        or kind.on_update is not Defense.on_update
    )
