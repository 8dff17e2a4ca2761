"""The published users, their claims, and the scores of these by Overheard's scorer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

import torch

from overheard.core.knowledge import Knowledge
from overheard.core.scorer import Score
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard_studies.values import Published

PUBLISHED = Published("decaf")

NULL_CLASS_MARK = "-"
"""The tables' mark for a null class; a 0 is a share that was estimated as 0."""

PublishedDistances = tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class PublishedUser:
    """One user of a table, as published.

    Args:
        true_percents: true share of each class in percent; 0 for a null class.
        claimed_percents: shares that the paper's attack claimed.
        true_null_classes: for each class, whether the user holds none of it.
        claimed_null_classes: for each class, whether the attack claimed it as null.
        distances: L1, L2 and Linf in percent if the table has them; else ().
        guess_distances: the same for the paper's random guess.

    """

    true_percents: tuple[float, ...]
    claimed_percents: tuple[float, ...]
    true_null_classes: tuple[bool, ...]
    claimed_null_classes: tuple[bool, ...]
    distances: PublishedDistances
    guess_distances: PublishedDistances

    def reordered(self, columns: Sequence[int]) -> "PublishedUser":
        """Return the same user with column `columns[i]` of the table as label i."""
        return replace(
            self,
            true_percents=tuple(self.true_percents[column] for column in columns),
            claimed_percents=tuple(self.claimed_percents[column] for column in columns),
            true_null_classes=tuple(self.true_null_classes[column] for column in columns),
            claimed_null_classes=tuple(self.claimed_null_classes[column] for column in columns),
        )

    def truth(self) -> LabelShares:
        """Return the ground truth."""
        return _shares(self.true_percents, self.true_null_classes)

    def claim(self) -> LabelShares:
        """Return the claim of the paper's attack."""
        return _shares(self.claimed_percents, self.claimed_null_classes)


@cache
def published_tables() -> Mapping[str, tuple[PublishedUser, ...]]:
    """Return the users of each table, by names such as "table3"."""
    return {
        name: tuple(_user(entry) for entry in rows)
        for name, rows in PUBLISHED.find().items()
        if isinstance(rows, list)
    }


@cache
def published_accuracies() -> Mapping[str, float]:
    """Return the accuracy of the global model (0..1) by defense: Table XI."""
    return {name: value / 100 for name, value in PUBLISHED.find("accuracy").items()}


def _user(entry: Mapping[str, str]) -> PublishedUser:
    true, claimed = entry["true"].split(), entry["decaf"].split()
    return PublishedUser(
        _numbers(true),
        _numbers(claimed),
        tuple(word == NULL_CLASS_MARK for word in true),
        tuple(word == NULL_CLASS_MARK for word in claimed),
        _numbers(entry.get("stated", "").split()),
        _numbers(entry.get("guess", "").split()),
    )


def _numbers(words: list[str]) -> tuple[float, ...]:
    return tuple(0.0 if word == NULL_CLASS_MARK else float(word) for word in words)


def _shares(percent: tuple[float, ...], null: tuple[bool, ...]) -> LabelShares:
    shares = normalize_to_shares(torch.tensor(percent, dtype=torch.float64))
    return LabelShares(shares, torch.tensor(null))


def mean_published_score(users: Sequence[PublishedUser], score: str) -> float:
    """Return the mean score of the paper's attack over a table's users."""
    return sum(score_published_claim(user, score).value for user in users) / len(users)


def mean_published_guess_score(users: Sequence[PublishedUser], score: str, guess: str) -> float:
    """Return the mean score of a guess over a table's users."""
    values = []
    for user in users:
        one = score_published_claim(user, score)
        values.append({**one.uninformed, **one.references}[guess])
    return sum(values) / len(values)


def score_published_claim(user: PublishedUser, score: str) -> Score:
    """Score the paper's attack on one user."""
    scorer, truth = LabelSharesScorer(), user.truth()
    guesses = scorer.guesses(truth, Knowledge(classes=len(user.true_percents)))
    (one,) = [each for each in scorer.score(user.claim(), truth, guesses) if each.name == score]
    return one
