"""How well claimed attributes of people fit those of other people."""

import numpy as np
from jaxtyping import Float, Int

from overheard.statistics.pairing_sums import log_fit
from overheard.statistics.person_pairings import sum_by_person


def attribute_fits(
    claims: Float[np.ndarray, "attacks targets values"],
    people: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    values: Int[np.ndarray, " people"],
) -> Float[np.ndarray, "attacks people people"]:
    """Return how well the claims about each person fit the true value of every person.

    It is the sum over the person's targets of `log_fit` of the claimed probability, less the
    mean of the run.

    Args:
        claims: the claimed probability of each value.
        people: the person behind each target.
        runs: the run of each target.
        values: the true value of each person; -1 = none of those claimed.

    """
    fits = []
    for probabilities in claims:
        with_none = np.append(probabilities, np.zeros((len(people), 1)), axis=1)
        of_people = log_fit(with_none)[:, values]  # (targets, people)
        fits.append(sum_by_person(of_people, people, runs, len(values)))
    return np.stack(fits)
