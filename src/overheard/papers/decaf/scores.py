"""The scores that the experiments report, and the names of their values."""

from overheard.core.scorer import Better

ATTACK = "decaf"
"""Name in a plan of the attack with the paper's settings."""

DISTANCES = ("l1", "l2", "linf")

VERDICTS = ("null_recall", "null_precision", "null_exact")
"""Scores for null classes."""


def told_as(score: str) -> str:
    """Return the name of the value that is the mean of this score over all users.

    >>> told_as("l1"), told_as("null_recall")
    ('mean_l1', 'null_recall')
    """
    return score if score in VERDICTS else f"mean_{score}"


def direction(score: str) -> Better:
    """Return whether higher or lower scores mean a better attack."""
    return "higher" if score in VERDICTS else "lower"
