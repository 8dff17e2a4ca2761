"""Plain noise: each client adds a Gaussian to its update, without clipping."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Gt

from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.mechanism import Site
from overheard.core.messages import Update
from overheard.defenses._gaussian import draw_gaussian


@final
@dataclass(frozen=True, slots=True)
class Noise(Defense):
    """Each client adds Gaussian noise to every number of its update, without clipping.

    This is often called local differential privacy, but is not. Without a bound on the norm of
    an update, one client's data may change it by more than any noise covers, so there is no
    epsilon. `local_dp` clips and has one.

    It does not hide long updates. It does not hide patterns common to many rounds or parameters
    either, because the noise is independent and averages out. `Update.examples` and
    `Update.metrics` are sent in clear text.

    Args:
        deviation: standard deviation of the noise, in the units of the weights.

    """

    deviation: Annotated[float, Gt(0)] = 0.01

    name: ClassVar[str] = "noise"
    source: ClassVar[str] = "Zhu et al. 2019 (NeurIPS), defense strategies: noisy gradients"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Add noise, seeded by the context and the name of the parameter."""
        noisy = {
            name: part + self.deviation * draw_gaussian(part, name, context)
            for name, part in update.delta.items()
        }
        return replace(update, delta=noisy)

    def promise(self, run: RunParameters) -> str:
        """State that there is no formal promise, and why."""
        return (
            "no formal promise (epsilon infinite): updates are not clipped, so the data of one "
            "client may change its update by more than any noise covers"
        )
