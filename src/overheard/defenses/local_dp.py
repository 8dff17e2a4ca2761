"""Local differential privacy: each client clips its update and adds noise before it sends."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Gt, Lt
from torch import Tensor

from overheard.core.accounting.accountant import (
    CLOSED_FORM,
    format_epsilon,
    gaussian_epsilon,
    is_accountant_installed,
)
from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.mechanism import INSTALL_HINT, Mechanism, Site
from overheard.core.messages import Update, Weights
from overheard.defenses._clipping import clip_update
from overheard.defenses._gaussian import draw_gaussian


@final
@dataclass(frozen=True, slots=True)
class LocalDp(Defense):
    """Each client clips its update and adds Gaussian noise (Gaussian mechanism).

    The update is clipped to an L2 norm of `clip` over all parameters. A Gaussian of standard
    deviation `noise_multiplier * clip` is added to every coordinate, in the precision of the
    tensor.

    Only the weights are protected. `Update.examples` is sent in the clear: counts also leak,
    and the promise does not cover them. With noise, simulated clients send no losses. The
    noise is floating-point and comes from a seeded generator. This suits an audit but not
    production, where its low bits could reveal the update (Mironov 2012).

    Args:
        clip: largest L2 norm of an update before noise.
        noise_multiplier: standard deviation of the noise, in units of `clip`; 0 = clip only.
        delta: delta of the promise; should be well below 1 / number of clients.

    """

    clip: Annotated[float, Gt(0)] = 1.0
    noise_multiplier: Annotated[float, Ge(0)] = 1.0
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5

    name: ClassVar[str] = "local_dp"
    source: ClassVar[str] = (
        "Clipping and noise: McMahan et al. 2018 (ICLR), with the noise at each client; "
        "accounting: privacy loss of the Gaussian in closed form, Balle and Wang 2018 (ICML), "
        "Theorem 8"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Clip and add noise, seeded by the context and the name of the parameter.

        Raises:
            ValueError: if the update has NaN or infinite numbers.

        """
        return replace(
            update, delta=self._noisy(clip_update(update.delta, self.clip, context), context)
        )

    def mechanism(self) -> Mechanism:
        """Return the mechanism: noise at the client on its clipped update."""
        return Mechanism(self.noise_multiplier, self.clip, self.delta, "client", "client")

    def promise(self, run: RunParameters) -> str:
        """State the epsilon of a client that takes part in every round, and its conditions.

        There is no amplification by sampling, because the adversary is the server, which knows
        who was sampled. Without `dp-accounting` the text says that no epsilon was computed, and
        how to install it.
        """
        if self.noise_multiplier == 0:
            return (
                f"clipping only (clip {self.clip:g}): no formal promise (epsilon infinite); "
                "example counts and metrics stay in clear text"
            )
        return (
            f"{self._epsilons(run)}, at delta "
            f"{self.delta:g}. Gaussian mechanism at each client, clip {self.clip:g} (L2, whole "
            f"update), noise multiplier {self.noise_multiplier:g}, sampling rate 1, "
            f"{run.rounds} rounds, accountant {CLOSED_FORM}. The sampling rate is that "
            "of the worst case, a client that takes part in every round; the run's rate of "
            f"participation, {run.participation:g}, is not used. Example counts and "
            "metrics stay in clear text and are not covered"
        )

    def _epsilons(self, run: RunParameters) -> str:
        if not is_accountant_installed():
            return f"epsilon not computed ({INSTALL_HINT}) if all data of one user are replaced"
        # Replacing an update by another of norm `clip` changes it twice as much as removing it.
        replaced = gaussian_epsilon(self.noise_multiplier / 2, run.rounds, self.delta)
        added = gaussian_epsilon(self.noise_multiplier, run.rounds, self.delta)
        return (
            f"epsilon {format_epsilon(replaced)} if all data of one user (a client) are "
            "replaced by any "
            f"other data, {format_epsilon(added)} if its update is replaced by zero"
        )

    def _noisy(self, delta: Weights, moment: DefenseContext) -> Mapping[str, Tensor]:
        if self.noise_multiplier == 0:
            return delta
        deviation = self.noise_multiplier * self.clip
        return {
            name: part + deviation * draw_gaussian(part, name, moment)
            for name, part in delta.items()
        }
