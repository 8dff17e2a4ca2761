"""The presumed noise of the paper's local differential privacy."""

from math import log, sqrt

from overheard.defenses.local_dp import LocalDp
from overheard.plans.plan import ArmPlan

CLIP = 4.0
DELTA = 1e-3
"""Clip and delta of Gu and Bai's code (LDIA), which uses the epsilons 1, 5, 10, 20 and 40."""

EXAMPLES = 4000
ROUNDS = 10
"""Examples of a client and rounds of a full run; a quick run has the same noise."""

MECHANISM = (
    "The paper's mechanism is lost. The one used here is that of Gu and Bai's code, after Wei "
    "et al. 2020. It clips an update to the norm clip and adds Gaussian noise of deviation 2 "
    "clip sqrt(2 rounds ln(1 / delta)) / (examples epsilon) to every weight. The formula has "
    f"clip {CLIP:g}, delta {DELTA:g}, {EXAMPLES} examples and {ROUNDS} rounds for every size "
    "of the run. It divides by the number of examples as if it hid one example and not a "
    "client. It also assumes that one example changes an update by at most 2 clip / examples, "
    "which nothing enforces. The epsilons are therefore the paper's names; each audit's "
    "report gives the formal guarantee of this noise for a client."
)


def noise_deviation(epsilon: float) -> float:
    """Return the standard deviation of the noise on each weight."""
    return 2 * CLIP / EXAMPLES * sqrt(2 * ROUNDS * log(1 / DELTA)) / epsilon


def build_noise_arm(epsilon: float) -> ArmPlan:
    """Build the arm whose clients add the noise."""
    return ArmPlan(
        name=f"epsilon {epsilon:g}",
        defenses=(
            LocalDp(clip=CLIP, noise_multiplier=noise_deviation(epsilon) / CLIP, delta=DELTA),
        ),
    )
