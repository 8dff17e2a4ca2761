"""How well rankings of known users fit the users behind other targets."""

import numpy as np
from jaxtyping import Float, Int

from overheard.statistics.person_pairings import sum_by_person


def identity_fits(
    scores: Float[np.ndarray, "attacks targets users"],
    people: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    users: Int[np.ndarray, " people"],
) -> Float[np.ndarray, "attacks people people"]:
    """Return how well the claims about each person fit the identity of every person.

    It is the sum over the person's targets of -ln(rank), less the mean of the run. The rank is
    that of the other person's identity among the known users; ties share their mean rank.

    Args:
        scores: the evidence for each known user, larger = more.
        people: the person behind each target.
        runs: the run of each target.
        users: the place of each person among the known users; -1 = not one of them.

    """
    fits = []
    for evidence in scores:
        from scipy.stats import rankdata  # only here: importing it takes half a second

        ranks = rankdata(-evidence, axis=1)
        of_people = np.where(users < 0, np.nan, -np.log(ranks)[:, users])
        fits.append(sum_by_person(of_people, people, runs, len(users)))
    return np.stack(fits)
