"""The probability that a word was used, from its evidence and from public text."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq

BINS = 100
"""Groups of words with about the same rank of evidence; a density is constant within one."""

STEPS = 30
"""Steps of expectation and maximisation; claims hardly change after ten."""

FEWEST_USED, MOST_USED = 0.002, 0.8
"""Shares of the vocabulary between which that of used words is taken to be."""

FIRST_SHARE = 0.05
"""The share of used words at the start."""


def log_odds_of_use(
    evidence: Sequence[Float[np.ndarray, " words"]],
    public: Float[np.ndarray, " words"],
) -> Float[np.ndarray, " words"]:
    """Return the log-odds that each word was used, after fitting to all words of a target.

    Words are of two groups, used and unused (Efron 2008, Microarrays, Empirical Bayes and the
    Two-Groups Model, Statistical Science 23, section 2). A word of public frequency f is used
    with probability 1 - exp(-c f), since it is drawn many times. Given the group, sources of
    evidence are taken to be independent, and the ratio of their densities rises with the
    evidence. The scale c and the ratios are fitted by expectation and maximisation: if the
    evidence says nothing, the ratios are near 1, and the order is about that of public text.

    It is public text that tells the two groups from each other. So it must use words as clients
    do, at least the frequent ones: evidence that goes against it is taken for chance.

    Args:
        evidence: for each source, larger = more probably used.
        public: how many public examples have each word.

    """
    frequency = public + 0.5
    bins = [_bin_by_rank(one) for one in evidence]
    # At the start, evidence counts as much as its rank.
    log_ratios = [np.log((one + 0.5) / BINS) - np.log(0.5) for one in bins]
    share = FIRST_SHARE
    log_odds = np.zeros(len(public))
    for _ in range(STEPS):
        prior = _probability_of_use(frequency, share)
        log_odds = np.log(prior / (1 - prior)) + np.sum(log_ratios, axis=0)
        used = 1 / (1 + np.exp(-log_odds.clip(-500, 500)))
        share = float(np.clip(used.mean(), FEWEST_USED, MOST_USED))
        log_ratios = [_fit_log_ratios(one, used) for one in bins]
    return log_odds


def _bin_by_rank(evidence: Float[np.ndarray, " words"]) -> Int[np.ndarray, " words"]:
    """Return the bin of each word, 0 = the least evidence; ties share one."""
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = (rankdata(evidence) - 0.5) / len(evidence)
    bins: Int[np.ndarray, " words"] = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)
    return bins


def _probability_of_use(
    frequency: Float[np.ndarray, " words"], share: float
) -> Float[np.ndarray, " words"]:
    """Return 1 - exp(-c f) of each word, with the scale c that makes the mean `share`."""

    def excess(log_scale: float) -> float:
        return float(-np.expm1(-np.exp(log_scale) * frequency).mean()) - share

    scale = np.exp(brentq(excess, -60.0, 60.0))
    # No word is certain before there is evidence.
    probabilities: Float[np.ndarray, " words"] = (-np.expm1(-scale * frequency)).clip(
        1e-9, 1 - 1e-6
    )
    return probabilities


def _fit_log_ratios(
    bins: Int[np.ndarray, " words"], used: Float[np.ndarray, " words"]
) -> Float[np.ndarray, " words"]:
    """Return the log-ratio of the densities of used and unused words, rising with the bin.

    Each group has one extra word, spread over the bins (Laplace).
    """
    from sklearn.isotonic import isotonic_regression

    sizes = np.bincount(bins, minlength=BINS).astype(np.float64)
    of_used = np.bincount(bins, used, BINS) + sizes / len(bins)
    of_unused = np.bincount(bins, 1 - used, BINS) + sizes / len(bins)
    seen = sizes > 0
    ratio = of_used[seen] / (of_used[seen] + of_unused[seen])
    rising = isotonic_regression(ratio, sample_weight=sizes[seen])
    log_ratios = np.zeros(BINS)
    log_ratios[seen] = np.log(rising / (1 - rising)) - np.log(of_used.sum() / of_unused.sum())
    found: Float[np.ndarray, " words"] = log_ratios[bins]
    return found
