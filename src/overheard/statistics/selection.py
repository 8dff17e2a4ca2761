"""The interval of the strongest of several attacks."""

from collections.abc import Sequence

from overheard.statistics.estimate import TAIL, Estimate


def estimate_strongest(gains: Sequence[Estimate]) -> Estimate:
    """Return the largest of the gains of several attacks, with the interval of the largest.

    The attack whose estimate is the largest is often the luckiest one, so that its own interval
    is too high. The interval returned runs from the largest lower end, each at 97.5 % divided
    among the attacks (Bonferroni), to the largest upper end, each at 97.5 %. It covers the
    largest of the true gains in 95 % of audits, however the attacks are correlated.

    An attack without an interval has unknown ends: the upper end is then None.

    Args:
        gains: the gain of each attack, one or more.

    """
    lows = [gain.low_at(TAIL / len(gains)) for gain in gains]
    highs = [gain.high for gain in gains]
    known_lows = [low for low in lows if low is not None]
    known_highs = [high for high in highs if high is not None]
    best = max(gains, key=lambda gain: gain.mean)
    return Estimate(
        best.mean,
        max(known_lows, default=None),
        max(known_highs) if len(known_highs) == len(gains) else None,
        "these runs" if any(gain.basis == "these runs" for gain in gains) else best.basis,
        best.degrees,
    )


def are_below(gains: Sequence[Estimate], margin: float) -> bool:
    """Return whether the upper 97.5 % end of every attack's gain is below the margin.

    This needs no correction for the number of attacks: the true gain of the strongest is above
    the margin in at most 2.5 % of the audits where this is returned as true by chance.
    """
    return all(gain.high is not None and gain.high < margin for gain in gains)
