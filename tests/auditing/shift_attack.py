"""A simple shift attack, for audits with controls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.claims import Timeline
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.shift.claim import Shift


@final
@dataclass(frozen=True, slots=True)
class Pull(Attack[Shift]):
    """Raises an alarm if a client's updates increase the bias of label 0."""

    name: ClassVar[str] = "pull"
    claim_type: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "ours"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        claims = {}
        for target in targets:
            pulls = [
                float(update.delta["1.bias"][0]) for update in view.updates(target).values()
            ]
            pulled = [number for number, pull in enumerate(pulls) if pull > 0.03]
            alarm = pulled[0] if pulled else None
            evidence = Timeline(view.rounds(), tuple(pulls), alarm=alarm, since=alarm)
            claims[target] = Shift(evidence)
        return claims
