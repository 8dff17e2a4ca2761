"""Needs have distinct descriptions, and plugins may define their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack, missing_needs
from overheard.core.knowledge import Knowledge
from overheard.core.needs import MODEL, UPDATES, Need
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.claim import LabelShares

NOTHING = View(frozenset({SERVER}), ())

LATE = Need("zeal", lambda view, target, knowledge: False)
EARLY = Need("a clear sky", lambda view, target, knowledge: False)
MET = Need("two classes", lambda view, target, knowledge: knowledge.classes == 2)


@final
@dataclass(frozen=True, slots=True)
class Foreign(Attack[LabelShares]):
    """Has built-in needs and needs of its own."""

    name: ClassVar[str] = "foreign"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({LATE, MODEL, MET, UPDATES, EARLY})
    source: ClassVar[str] = "test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return {}


def test_needs_of_plugins_are_checked_and_named_after_built_in_ones():
    missing = missing_needs(Foreign(), NOTHING, client(0), Knowledge(2))
    assert missing == (UPDATES.description, MODEL.description, "a clear sky", "zeal")
    assert "two classes" in missing_needs(Foreign(), NOTHING, client(0), Knowledge(3))
