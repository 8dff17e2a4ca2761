"""Which scores of the attack the experiments tell of, and under what names."""

from overheard.core.scorer import Better

ATTACK = "decaf"
"""What a plan calls the attack with the paper's settings."""

DISTANCES = ("l1", "l2", "linf")

VERDICTS = ("null_recall", "null_precision", "null_exact")
"""How well it tells null classes."""


def told_as(score: str) -> str:
    """The name of the figure that is the mean of this score over all users.

    >>> told_as("l1"), told_as("null_recall")
    ('mean_l1', 'null_recall')
    """
    return score if score in VERDICTS else f"mean_{score}"


def direction(score: str) -> Better:
    """Which way a better attack lies."""
    return "higher" if score in VERDICTS else "lower"
