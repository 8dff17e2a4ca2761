"""Curves of re-identification: top-k rates, and detection with unknown users."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from overheard.questions.identity.statistics.open_set import (
    detection_identification_rate,
    split_known_and_unknown,
)
from overheard.questions.identity.statistics.ranking import Ranking


def cmc_curve(runs: Sequence[Ranking], lengths: Sequence[int]) -> Float[np.ndarray, " k"]:
    """Return the share of known targets whose user is in the top k, ties at random."""
    shares = []
    for run in runs:
        known = run.target_user < run.known_count
        scores = run.scores[known]
        true_scores = scores[np.arange(len(scores)), run.known_columns[run.target_user[known]]][
            :, None
        ]
        better, tied = (scores > true_scores).sum(1), (scores == true_scores).sum(1)
        hits = (np.array(lengths)[:, None] - better) / tied  # (lengths, targets)
        shares.append(hits.clip(0, 1).mean(1))
    means: Float[np.ndarray, " k"] = np.mean(shares, axis=0)
    return means


def identification_curve(
    runs: Sequence[Ranking], percents: Sequence[float]
) -> Float[np.ndarray, " rates"] | None:
    """Return the share of known targets identified at each percentage of false positives.

    None if no unknown users took part.
    """
    open_sets = [split for run in runs if (split := split_known_and_unknown(run)) is not None]
    if not open_sets:
        return None
    return np.array(
        [
            float(
                np.mean([detection_identification_rate(split, percent) for split in open_sets])
            )
            for percent in percents
        ]
    )
