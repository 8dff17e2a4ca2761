"""Central differential privacy: clients clip, and the server adds noise to their mean."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Gt, Lt
from torch import Tensor

from overheard.core.accounting.accountant import CLOSED_FORM, account_mechanism, format_epsilon
from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.mechanism import Mechanism, Site
from overheard.core.messages import Aggregate, Update
from overheard.defenses._clipping import clip_update
from overheard.defenses._gaussian import draw_gaussian

OUTSIDE_GUARANTEE = (
    "the server is trusted: it reads clipped updates without noise, and metrics in clear text; "
    "example counts are not sent"
)
"""What the promise does not cover."""


@final
@dataclass(frozen=True, slots=True)
class DpFedavg(Defense):
    """Gaussian mechanism on the mean of a round's updates, with equal weights.

    Each client clips its update to an L2 norm of `clip` over all parameters, and does not send
    its number of examples. The server takes the unweighted mean over the M clients of the
    cohort. It adds a Gaussian of standard deviation `noise_multiplier * clip / M` to every
    coordinate before it updates the model.

    It protects against all parties that read the global models: other clients and users of the
    final model. The server is trusted to add the noise, and reads every update without it. For
    the same epsilon the mean has 1 / sqrt(M) of the noise of `local_dp`, which is a small gain
    for few clients. Equal weights cost accuracy if client sizes differ. A defense that acts on
    updates after this one may make them longer than `clip`, so list this one last.

    McMahan et al. sample each client independently (Poisson) and divide by the expected number.
    Here a fixed number of clients is sampled, and the mean is over those that send an update.
    So epsilon is computed for sampling without replacement. The noise is floating-point and
    comes from a seeded generator, which suits an audit but not production (Mironov 2012).

    Args:
        clip: largest L2 norm of an update.
        noise_multiplier: standard deviation of the noise on the sum of all updates, in units of
            `clip`; 0 = clip only.
        delta: delta of the promise; should be well below 1 / number of clients.

    """

    clip: Annotated[float, Gt(0)] = 1.0
    noise_multiplier: Annotated[float, Ge(0)] = 1.0
    delta: Annotated[float, Gt(0), Lt(1)] = 1e-5

    name: ClassVar[str] = "dp_fedavg"
    source: ClassVar[str] = (
        "McMahan, Ramage, Talwar and Zhang 2018 (ICLR), Algorithm 1 with flat clipping and "
        "equal weights; accounting: Balle and Wang 2018 (ICML), Theorem 8, and for sampled "
        "clients Wang, Balle and Kasiviswanathan 2019 (AISTATS)"
    )
    enforced_at: ClassVar[Site] = "server"
    switched_off_by: ClassVar[str] = (
        "the server, which may omit the noise; each client, for its own clipping, unless the "
        "server clips again"
    )

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Clip the update, and hide the number of examples, so that all weights are equal.

        With weights by size, one client could have nearly all the weight. The noise would then
        have to be on the scale of `clip`, not of `clip / M`.

        Raises:
            ValueError: if the update has NaN or infinite numbers.

        """
        return replace(
            update, delta=clip_update(update.delta, self.clip, context), examples=None
        )

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        """Add the noise, seeded by the context and the name of the parameter."""
        if self.noise_multiplier == 0:
            return aggregate
        deviation = self.noise_multiplier * self.clip / len(aggregate.cohort)
        noisy: Mapping[str, Tensor] = {
            name: part + deviation * draw_gaussian(part, name, context)
            for name, part in aggregate.delta.items()
        }
        return replace(aggregate, delta=noisy)

    def mechanism(self) -> Mechanism:
        """Return the mechanism: noise at the server on the sum of clipped updates.

        Replacing the data of one client may replace its update by any other of norm `clip`, so
        the sum changes by at most 2 clip.
        """
        return Mechanism(
            self.noise_multiplier, self.clip, self.delta, "server", "client", is_drawn=True
        )

    def promise(self, run: RunParameters) -> str:
        """State the epsilon of a client against any reader of all global models.

        Amplification by sampling is used if it helps, and stated separately: it holds only
        against parties that do not know who was sampled. Without `dp-accounting` the text says
        that no epsilon was computed, and how to install it.
        """
        if self.noise_multiplier == 0:
            return f"clipping only (clip {self.clip:g}): no formal promise (epsilon infinite)"
        accounted = account_mechanism(self.mechanism(), run)
        epsilons, is_poisson = accounted.recomputed, run.sampling == "poisson"
        if epsilons is None:
            epsilon, accountant = f"not computed ({accounted.doubt})", "none"
            sampling = f"sampling rate {run.sampling_rate:g}"
        elif epsilons.subsampled is None:
            epsilon, accountant = format_epsilon(epsilons.pld), CLOSED_FORM
            sampling = "sampling rate 1 (no amplification by sampling)"
        else:
            epsilon = format_epsilon(epsilons.subsampled)
            accountant = f"dp-accounting {'PLD' if is_poisson else 'RDP'}"
            sampling = (
                f"sampling rate {run.sampling_rate:g} "
                f"({'Poisson' if is_poisson else 'without replacement'}; epsilon "
                f"{format_epsilon(epsilons.pld)} against parties that know who was sampled)"
            )
        return (
            f"epsilon {epsilon} against any reader of all global models, if all data of "
            f"one user (a client) are replaced by any other data, at delta {self.delta:g}. "
            "Gaussian mechanism at the server on the mean of equally weighted updates, clip "
            f"{self.clip:g} (L2, whole update), noise multiplier {self.noise_multiplier:g}, "
            f"{sampling}, {run.rounds} rounds, accountant {accountant}; "
            f"{OUTSIDE_GUARANTEE}"
        )
