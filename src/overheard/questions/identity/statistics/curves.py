"""How well people are recognised at every length of a list of names, and among strangers."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from overheard.questions.identity.statistics.open_set import identified, open_set
from overheard.questions.identity.statistics.ranking import Ranking


def named_within(runs: Sequence[Ranking], lengths: Sequence[int]) -> Float[np.ndarray, " k"]:
    """The share of known targets whose user is among the first k named, ties by chance."""
    shares = []
    for run in runs:
        known = run.person < run.known
        scores = run.scores[known]
        own = scores[np.arange(len(scores)), run.column[run.person[known]]][:, None]
        better, tied = (scores > own).sum(1), (scores == own).sum(1)
        places = (np.array(lengths)[:, None] - better) / tied  # (lengths, targets)
        shares.append(places.clip(0, 1).mean(1))
    means: Float[np.ndarray, " k"] = np.mean(shares, axis=0)
    return means


def identified_at(
    runs: Sequence[Ranking], percents: Sequence[float]
) -> Float[np.ndarray, " rates"] | None:
    """The share of known targets named right at so many percent of false alarms.

    None where nobody unknown took part.
    """
    held = [one for run in runs if (one := open_set(run)) is not None]
    if not held:
        return None
    return np.array(
        [float(np.mean([identified(one, percent) for one in held])) for percent in percents]
    )
