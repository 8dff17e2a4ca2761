"""Scores that compare the evidence of a word with that of most words."""

import torch
from jaxtyping import Float
from torch import Tensor

SMALLEST_SPREAD = 1e-6
"""Least spread, as a share of the largest deviation: most unused words may be exactly alike."""


def robust_scores(evidence: Float[Tensor, " words"]) -> Float[Tensor, " words"]:
    """Return how many median absolute deviations each word is above the median.

    A client does not use most words, so median and deviation are those of unused words. A
    source of evidence that distinguishes used words clearly has large scores for them, and one
    that noise hides has small ones. So the scores of several sources and rounds can be added.
    All are 0 if the evidence is the same for all words.
    """
    deviations = evidence - evidence.median()
    largest = float(deviations.abs().max())
    if largest == 0:
        return torch.zeros_like(evidence)
    spread = max(float(deviations.abs().median()), SMALLEST_SPREAD * largest)
    return deviations / spread
