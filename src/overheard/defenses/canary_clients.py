"""Canary clients: some clients send a random direction, so that epsilon can be estimated."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Gt

from overheard.core.algorithm.canary_direction import draw_canary_direction
from overheard.core.defense import Defense, DefenseContext
from overheard.core.mechanism import Site
from overheard.core.messages import Update
from overheard.core.parties import Party, client
from overheard.core.settings import Positive


@final
@dataclass(frozen=True, slots=True)
class CanaryClients(Defense):
    """The first clients send a random direction of norm `clip` in place of their update.

    It protects nobody. It stands among the defenses because it changes what clients send, and
    it belongs before the defense that it measures. A direction is the same in all rounds. How
    far it shows in the released models, beside directions that nobody sent, gives an estimate
    of the epsilon of all data of a client, in the run itself. The data of canaries are not
    used, which costs accuracy. Attacks are not asked about canaries.

    Args:
        count: number of canary clients. The interval of the estimate shrinks with its root.
        clip: norm of what they send: the clip of the defense that is measured.

    """

    count: Positive = 10
    clip: Annotated[float, Gt(0)] = 1.0

    name: ClassVar[str] = "canary_clients"
    source: ClassVar[str] = (
        "Andrew, Kairouz, Oh, Oprea, McMahan and Suriyakumar 2024 (ICLR, One-shot Empirical "
        "Privacy Estimation for Federated Learning), Algorithms 1 and 2"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each canary, for itself"

    def is_canary(self, party: Party) -> bool:
        """Return whether this is one of the first clients."""
        return party in {client(number) for number in range(self.count)}

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Replace the update of a canary by its direction."""
        if not self.is_canary(context.party):
            return update
        direction = draw_canary_direction(update.delta, context.persistent_seed)
        delta = {name: self.clip * part for name, part in direction.items()}
        return replace(update, delta=delta)
