"""Mean average precision under random permutations of users among clients."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.ranking import Ranking
from overheard.statistics.estimate import BOOTSTRAP_DRAWS


def permuted_precisions(runs: Sequence[Ranking], seed: Seed) -> Float[np.ndarray, " draws"]:
    """Return the mean average precision of all known users in `BOOTSTRAP_DRAWS` permutations.

    Each permutation swaps all users of a run, known and unknown, and keeps the targets of each
    user together. Updates of one device are correlated, so permuting single targets would
    underestimate the variance (permutation of exchangeable units: Good 2005, section 3).
    """
    total, users = np.zeros(BOOTSTRAP_DRAWS), 0
    for run in runs:
        matrix, generator = run.precision_matrix(), seed.child("run", run.seed).numpy()
        places = np.tile(np.arange(len(run.true_users)), (BOOTSTRAP_DRAWS, 1))
        permuted = generator.permuted(places, axis=1)[:, : run.known_count]  # (draws, known)
        total += matrix[permuted, np.arange(run.known_count)].sum(1)
        users += run.known_count
    return total / users
