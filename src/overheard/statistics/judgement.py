"""The verdict on attacks, from their p-values; judging files loads no array library."""

from collections.abc import Sequence
from typing import Literal

VERDICT_LEVEL = 0.025
"""The largest p-value for which attacks are said to leak, and so the probability of a false
"leaks" where nothing leaks."""

Judgement = Literal[
    "leaks", "nothing to read", "not enough to judge", "no leak above margin", "inconclusive"
]
"""The verdicts, in the order in which they are tried.

- leaks: the claims of an attack fit their own targets better than others, by more than chance,
  and gain on an uninformed guess.
- nothing to read: guesses are so good that no attack can gain more than the margin.
- not enough to judge: there are too few targets and runs for any p-value to be small enough.
- no leak above margin: every attack's gain is shown to be below the margin.
- inconclusive: none of these.
"""


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted for their number by the method of Holm 1979.

    Where none of the hypotheses is false, the smallest is at most a with probability at most a.

    >>> holm_adjusted([0.02, 0.01, 0.5])
    (0.04, 0.03, 0.5)
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def judge(
    p_values: Sequence[float],
    gains: Sequence[float],
    *,
    smallest_p: float,
    is_readable: bool,
    is_below_margin: bool,
) -> Judgement:
    """Return the verdict on the attacks of one question; the first that applies.

    Args:
        p_values: the p-value of each attack, adjusted for their number.
        gains: the mean gain of each attack over an uninformed guess.
        smallest_p: the smallest p-value that the number of pairings allows.
        is_readable: whether an attack can gain more than the margin at all.
        is_below_margin: whether all gains are shown to be below the margin.

    """
    if any(
        p_value <= VERDICT_LEVEL and gain > 0
        for p_value, gain in zip(p_values, gains, strict=True)
    ):
        return "leaks"
    if not is_readable:
        return "nothing to read"
    if smallest_p > VERDICT_LEVEL:
        return "not enough to judge"
    return "no leak above margin" if is_below_margin else "inconclusive"
