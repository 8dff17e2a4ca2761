"""Fits of claims about people who have several targets, some of them in several runs."""

import numpy as np
from jaxtyping import Float, Int


def sum_by_person(
    fits: Float[np.ndarray, "targets truths"],
    people: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    count: int,
) -> Float[np.ndarray, "people truths"]:
    """Return the sum of the fits of each person's claims with each truth, over all runs.

    The mean of a run is subtracted first: what all claims of a run have in common says nothing
    of a single target.

    Args:
        fits: how well the claim about each target fits each possible truth; NaN = there is no
            claim or no truth, which counts as the mean.
        people: the person behind each target, from 0 to `count` - 1.
        runs: the run of each target.
        count: number of people.

    """
    sums = np.zeros((count, fits.shape[1]))
    for run in np.unique(runs):
        in_run, known = fits[runs == run], ~np.isnan(fits[runs == run])
        means = np.where(known, in_run, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        np.add.at(sums, people[runs == run], np.where(known, in_run - means, 0.0))
    return sums


def group_by_runs(
    people: Int[np.ndarray, " targets"], runs: Int[np.ndarray, " targets"], count: int
) -> Int[np.ndarray, " people"]:
    """Return the group of each person, within which people are re-paired.

    A person is re-paired in all runs alike, since claims about one person are correlated
    between runs. People of a group take part in the same runs. If somebody has nobody to be
    exchanged with, all people form one group: who takes part is then taken to be random.

    >>> group_by_runs(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]), 3)
    array([0, 0, 0])
    >>> group_by_runs(np.array([0, 1, 2, 3, 0, 1]), np.array([0, 0, 0, 0, 1, 1]), 4)
    array([1, 1, 0, 0])
    """
    takes_part = np.zeros((count, int(runs.max()) + 1), dtype=np.int64)
    takes_part[people, runs] = 1
    _, groups, sizes = np.unique(takes_part, axis=0, return_inverse=True, return_counts=True)
    if sizes.min() == 1:
        return np.zeros(count, dtype=np.int64)
    flat: Int[np.ndarray, " people"] = groups.reshape(-1)
    return flat
