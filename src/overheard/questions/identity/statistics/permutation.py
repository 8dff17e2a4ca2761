"""What a figure comes to where devices swap identities by chance."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.ranking import Ranking
from overheard.statistics.estimate import DRAWS


def permuted_precisions(runs: Sequence[Ranking], seed: Seed) -> Float[np.ndarray, " draws"]:
    """The mean average precision, over all known users of all runs, of `DRAWS` permutations.

    In each, the people of a run swap identities, unknown ones too, and each keeps its targets:
    what one device sends clumps, and swapping single targets would take that for nothing, and
    the spread for far less than it is (a permutation within exchangeable units: Good 2005,
    section 3).
    """
    total, users = np.zeros(DRAWS), 0
    for run in runs:
        table, generator = run.precisions(), seed.child("run", run.seed).numpy()
        places = np.tile(np.arange(len(run.people)), (DRAWS, 1))
        swapped = generator.permuted(places, axis=1)[:, : run.known]  # (draws, known)
        total += table[swapped, np.arange(run.known)].sum(1)
        users += run.known
    return total / users
