"""Central differential privacy: clients clip, and the server adds noise to their mean."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

from torch import Tensor

from overheard.core.accountant import MISSING, account, told
from overheard.core.defense import Defense, Moment, Run, Site
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Aggregate, Update
from overheard.defenses._clipping import clipped, refuse_no_mechanism
from overheard.defenses._gaussian import gaussian

UNCOVERED = (
    "the server is trusted: it reads clipped updates without noise, and metrics in clear; "
    "example counts are not sent"
)
"""Against whom nothing is promised."""


@final
@dataclass(frozen=True, slots=True)
class DpFedavg(Defense):
    """Gaussian mechanism on the mean of a round's updates, in which all clients weigh alike.

    Each client scales its update down to an L2 norm of `clip`, over all parameters together,
    where it is longer, and keeps its number of examples to itself. The server takes the plain
    mean over the M clients that answered, and adds a Gaussian of standard deviation
    `noise_multiplier * clip / M` to every coordinate before it moves the model.

    It protects against whoever gets the global models: other clients, and those who get the
    model in the end. The server is trusted to add the noise, and reads every update without it.
    For the same epsilon the mean bears 1 / sqrt(M) of the noise that `local_dp` leaves in it,
    which is little gain for few clients. Weighing all alike costs accuracy where sizes differ.
    A defense that acts on updates after this one may make them longer than `clip`: name this
    one last.

    McMahan et al. draw each client for itself (Poisson) and divide by the number expected; here
    as many as planned are drawn, and the mean is over those who answer, so epsilon is reckoned
    for a draw without replacement. The noise comes in floating point from a seeded generator,
    which is right for an audit and wrong for production (Mironov 2012).

    Args:
        clip: largest L2 norm of an update.
        noise_multiplier: standard deviation of the noise on the sum of all updates, in units of
            `clip`; 0 = clip only.
        delta: of the promise; should be well below 1 / number of clients.

    """

    clip: float = 1.0
    noise_multiplier: float = 1.0
    delta: float = 1e-5

    name: ClassVar[str] = "dp_fedavg"
    source: ClassVar[str] = (
        "McMahan, Ramage, Talwar and Zhang 2018 (ICLR), Algorithm 1 with flat clipping and "
        "equal weights; accounting: privacy loss distributions, Doroshenko et al. 2022 "
        "(PoPETs), and for drawn clients Wang, Balle and Kasiviswanathan 2019 (AISTATS)"
    )
    enforced_at: ClassVar[Site] = "server"
    switched_off_by: ClassVar[str] = (
        "the server, which may leave out the noise; each client its own clipping, unless the "
        "server clips once more"
    )

    def __post_init__(self) -> None:
        """Refuse what is no mechanism."""
        refuse_no_mechanism(self.clip, self.noise_multiplier, self.delta)

    def on_update(self, update: Update, moment: Moment) -> Update:
        """Clip, and hide the number of examples, so that all weigh alike.

        By size, a client could weigh up to 1, and no noise below `clip` itself would cover it.

        Raises:
            ValueError: if the update holds NaN or infinite numbers.

        """
        return replace(update, delta=clipped(update.delta, self.clip, moment), examples=None)

    def on_aggregate(self, aggregate: Aggregate, moment: Moment) -> Aggregate:
        """Add the noise, which follows from a parameter's name and the moment."""
        if self.noise_multiplier == 0:
            return aggregate
        deviation = self.noise_multiplier * self.clip / len(aggregate.cohort)
        noisy: Mapping[str, Tensor] = {
            name: part + deviation * gaussian(part, name, moment)
            for name, part in aggregate.delta.items()
        }
        return replace(aggregate, delta=noisy)

    def mechanism(self) -> Mechanism:
        """Noise at the server on the sum of updates that clients clip.

        The data of one client may turn its update into any other of norm `clip`, so the sum
        moves by 2 clip at most.
        """
        return Mechanism(
            self.noise_multiplier, self.clip, self.delta, "server", "client", is_drawn=True
        )

    def promise(self, run: Run) -> str:
        """The epsilon of a client against whoever reads all global models.

        Sampling is counted on where it helps, and told apart: it helps only against those who
        do not know who was asked. Without `dp-accounting` it says that no epsilon was reckoned,
        and how to mend that.
        """
        if self.noise_multiplier == 0:
            return f"clipping only (clip {self.clip:g}): no formal promise (epsilon infinite)"
        found = account(self.mechanism(), run).recomputed
        if found is None:
            epsilon, accountant = f"not reckoned ({MISSING})", "none"
            sampling = f"sampling rate {run.sampling_rate:g}"
        elif found.drawn is None:
            epsilon, accountant = told(found.pld), "dp-accounting PLD"
            sampling = "sampling rate 1 (no sampling is counted on)"
        else:
            epsilon, accountant = told(found.drawn), "dp-accounting RDP"
            sampling = (
                f"sampling rate {run.sampling_rate:g} (without replacement; epsilon "
                f"{told(found.pld)} against those who know who was asked)"
            )
        return (
            f"epsilon {epsilon} against whoever reads all global models, if all data of "
            f"one user (a client) are replaced by any other data, at delta {self.delta:g}: "
            "Gaussian mechanism at the server on the mean of equally weighed updates, clip "
            f"{self.clip:g} (L2, whole update), noise multiplier {self.noise_multiplier:g}, "
            f"{sampling}, {run.rounds} rounds, accountant {accountant}; "
            f"{UNCOVERED}"
        )
