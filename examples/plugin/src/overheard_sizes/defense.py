"""A defense that scales every update to the same norm."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Gt

from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.mechanism import Site
from overheard.core.messages import Update


@final
@dataclass(frozen=True, slots=True)
class EvenNorm(Defense):
    """Scales every update to the same norm, and hides the number of examples.

    Args:
        length: norm of every update.

    """

    length: Annotated[float, Gt(0)] = 1.0

    name: ClassVar[str] = "even_norm"
    source: ClassVar[str] = "an example of this package"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "the client itself"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Scale the update, and remove its number of examples."""
        total = sum(float(w.double().square().sum()) for w in update.delta.values()) ** 0.5
        scale = self.length / total if total else 0.0
        return replace(
            update, delta={name: w * scale for name, w in update.delta.items()}, examples=None
        )

    def promise(self, run: RunParameters) -> str:
        """State that there is no formal guarantee."""
        return "no formal promise: the direction of an update still depends on the data"
