"""The scores that the experiments report, and the names of their values."""

from overheard.core.scorer import Better
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import Decaf

PUBLISHED_DECAF = Decaf(bases="published")
"""The attack with the paper's bases."""

ATTACK = plugin_label(PUBLISHED_DECAF)
"""Name of the attack in a plan."""

DISTANCES = ("l1", "l2", "linf")

NULL_CLASS_SCORES = ("null_recall", "null_precision", "null_exact")
"""Scores for null classes."""


def value_name(score: str) -> str:
    """Return the name of the value that is the mean of this score over all users.

    >>> value_name("l1"), value_name("null_recall")
    ('mean_l1', 'null_recall')
    """
    return score if score in NULL_CLASS_SCORES else f"mean_{score}"


def better_direction(score: str) -> Better:
    """Return whether higher or lower scores mean a better attack."""
    return "higher" if score in NULL_CLASS_SCORES else "lower"
