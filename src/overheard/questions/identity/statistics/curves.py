"""Cumulative match curves and identification rates among unknown users."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from overheard.questions.identity.statistics.open_set import identified, open_set
from overheard.questions.identity.statistics.ranking import Ranking


def named_within(runs: Sequence[Ranking], lengths: Sequence[int]) -> Float[np.ndarray, " k"]:
    """Return the share of known targets whose user is in the top k, ties at random."""
    shares = []
    for run in runs:
        known = run.person < run.known
        scores = run.scores[known]
        true_scores = scores[np.arange(len(scores)), run.column[run.person[known]]][:, None]
        better, tied = (scores > true_scores).sum(1), (scores == true_scores).sum(1)
        hits = (np.array(lengths)[:, None] - better) / tied  # (lengths, targets)
        shares.append(hits.clip(0, 1).mean(1))
    means: Float[np.ndarray, " k"] = np.mean(shares, axis=0)
    return means


def identified_at(
    runs: Sequence[Ranking], percents: Sequence[float]
) -> Float[np.ndarray, " rates"] | None:
    """Return the share of known targets identified at each percentage of false alarms.

    None if no unknown users took part.
    """
    open_sets = [split for run in runs if (split := open_set(run)) is not None]
    if not open_sets:
        return None
    return np.array(
        [
            float(np.mean([identified(split, percent) for split in open_sets]))
            for percent in percents
        ]
    )
