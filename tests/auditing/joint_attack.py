"""A joint attack: one claim about all clients of a view together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.claim import LabelShares


@final
@dataclass(frozen=True, slots=True)
class AllTogether(Attack[LabelShares]):
    """Claims of all clients together that their labels are the rarer, the higher their number.

    Args:
        fewest: how many clients it needs.

    """

    fewest: int = 2

    name: ClassVar[str] = "all_together"
    claim_type: ClassVar[type[LabelShares]] = LabelShares
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "a test of ours"
    is_joint: ClassVar[bool] = True
    is_label_equivariant: ClassVar[bool] = False

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Return one claim, which depends on how many targets there are."""
        if len(targets) < self.fewest:
            raise NeedsError(f"at least {self.fewest} clients")
        shares = torch.linspace(len(targets), 1, knowledge.classes)
        return {COHORT: LabelShares(shares / shares.sum())}
