"""The noise that the paper's local differential privacy seems to be."""

from math import log, sqrt

from overheard.defenses.local_dp import LocalDp
from overheard.plans.plan import ArmPlan

CLIP = 4.0
DELTA = 1e-3
"""Of Gu and Bai's code (LDIA), which tries the epsilons 1, 5, 10, 20 and 40."""

EXAMPLES = 4000
ROUNDS = 10
"""Of a client and of a run at full size; a run in a hurry keeps the noise of these."""

MECHANISM = (
    "The mechanism is lost. Ours is that of Gu and Bai's code, after Wei et al. 2020: Gaussian "
    f"noise of deviation 2 clip sqrt(2 rounds ln(1 / delta)) / (examples epsilon) on every "
    f"weight, with clip {CLIP:g} and delta {DELTA:g}, for {EXAMPLES} examples and {ROUNDS} "
    "rounds, whatever the size of the run, on an update clipped to that clip. It divides by "
    "the number of examples as if one example, not a client, were to be hidden, and as if no "
    "example could move an update by more than 2 clip / examples, which nothing sees to: the "
    "epsilons are the paper's words, and what such noise formally promises for a client "
    "stands in each audit's report."
)


def deviation(epsilon: float) -> float:
    """Standard deviation of the noise on each weight."""
    return 2 * CLIP / EXAMPLES * sqrt(2 * ROUNDS * log(1 / DELTA)) / epsilon


def arm(epsilon: float) -> ArmPlan:
    """The federation whose clients add it."""
    return ArmPlan(
        name=f"epsilon {epsilon:g}",
        defenses=(LocalDp(clip=CLIP, noise_multiplier=deviation(epsilon) / CLIP, delta=DELTA),),
    )
