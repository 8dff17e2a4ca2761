"""The contract of an attack."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Generic, Literal, TypeVar

from overheard.core.claims import Claim
from overheard.core.defense import Defense, TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import NEEDS, Need
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Settings
from overheard.core.view import View

C = TypeVar("C", bound=Claim)

TrainingSource = Literal[
    "virtual clients", "known users", "shadow models", "shadow devices", "none"
]
"""Whose updates an attack is trained on before it makes claims.

"virtual clients", "known users", "shadow models": the attacker simulates them with the defenses
that it knows; shadow models are virtual clients that train on some of the candidate records.
"shadow devices": they take part in the run, where the arm's defenses may apply to them.
"none": the attack trains on no updates of its own, or only on undefended ones.
"""


class Attack(Settings, ABC, Generic[C]):
    """Infers a claim about each target from an observer's view.

    A concrete attack is a final frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    claim_type: ClassVar[type[Claim]]
    needs: ClassVar[frozenset[Need]]
    source: ClassVar[str]
    """Where the idea comes from: authors, year, section or equation."""
    is_label_equivariant: ClassVar[bool] = True
    """True if permuting the labels merely permutes the claim.

    False where random draws belong to label positions, such as the initial weights of a network
    over label columns, or the label counts of virtual clients. Claims then change with a
    permutation, less so for a better method.
    """

    is_joint: ClassVar[bool] = False
    """Whether it makes one claim about all targets together, such as which of them holds a
    record. `infer` then returns this claim under the name `COHORT`. `Claim.numbers` states the
    order of its numbers."""

    quick_settings: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Settings for contract tests that do not ask how good claims are; {} = its defaults."""
    accurate_settings: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Settings for contract tests in which it must find what leaks; {} = its defaults."""

    def training_source(self) -> TrainingSource:
        """Return whose updates the attack is trained on, with these settings."""
        return "none"

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on.

        Only for attacks that train no clients. A known defense that changes one of these parts
        then changes the claims.
        """
        return frozenset()

    def has_separate_targets(self) -> bool:
        """Return whether it treats targets separately, with these settings.

        A claim then follows from the broadcasts and the updates of its target, without any
        training or fit, and is not joint. Such an attack gets the targets in groups, so that
        all such attacks of an audit read the messages of a group together.
        """
        return False

    @abstractmethod
    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, C]:
        """Make a claim about every target from the view and the knowledge alone.

        All targets come at once, so that shared work is done once. Unless the attack is joint
        (`is_joint`), a claim about one target must not depend on which other targets are given.
        """


def missing_needs(
    attack: Attack[C], view: View, target: Party, knowledge: Knowledge
) -> tuple[str, ...]:
    """Describe the needs of the attack that are not met for this target."""
    built_in = [need for need in NEEDS if need in attack.needs]
    others = sorted(attack.needs.difference(NEEDS), key=lambda need: need.description)
    return tuple(
        need.description
        for need in (*built_in, *others)
        if not need.is_met(view, target, knowledge)
    )


def check_needs(attack: Attack[C], view: View, target: Party, knowledge: Knowledge) -> None:
    """Raise `NeedsError`, naming each unmet need, unless the attack can run on this target."""
    missing = missing_needs(attack, view, target, knowledge)
    if missing:
        raise NeedsError(f"{attack.name} on {target} needs {'; '.join(missing)}")


def adapts_to_defenses(
    attack: Attack[C],
    known_defenses: Sequence[Defense],
    active_defenses: Sequence[Defense],
    are_shadow_devices_defended: bool,
) -> bool:
    """Return whether an attack adapts to the run's defenses: its claims change with them.

    Args:
        attack: with its settings.
        known_defenses: the defenses that the attacker knows.
        active_defenses: the defenses of the run.
        are_shadow_devices_defended: whether those defenses apply to shadow devices too.

    """
    match attack.training_source():
        case "virtual clients" | "known users" | "shadow models":
            return any(map(_acts_on_clients, known_defenses))
        case "shadow devices":
            return are_shadow_devices_defended and any(map(_acts_on_clients, active_defenses))
        case "none":
            return any(
                attack.used_training_parts() & defense.changes_training
                for defense in known_defenses
            )


def _acts_on_clients(defense: Defense) -> bool:
    kind = type(defense)
    return (
        bool(defense.changes_training)
        or kind.on_data is not Defense.on_data
        or kind.on_update is not Defense.on_update
    )
