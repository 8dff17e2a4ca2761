"""Scores what the paper printed by our own scorer, so that both sides are measured alike."""

from collections.abc import Sequence

from overheard.core.knowledge import Knowledge
from overheard.core.scorer import Score
from overheard.papers.decaf.users import User
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer


def printed_mean(users: Sequence[User], score: str) -> float:
    """The mean over a table's users of what the paper's attack scores."""
    return sum(printed(user, score).value for user in users) / len(users)


def printed_mean_guess(users: Sequence[User], score: str, guess: str) -> float:
    """The mean over a table's users of what a guess scores."""
    values = []
    for user in users:
        one = printed(user, score)
        values.append({**one.blinds, **one.references}[guess])
    return sum(values) / len(values)


def printed(user: User, score: str) -> Score:
    """What the paper's attack scores on one user."""
    scorer, truth = LabelSharesScorer(), user.truth()
    guesses = scorer.guesses(truth, Knowledge(classes=len(user.true)))
    (one,) = [each for each in scorer.score(user.claim(), truth, guesses) if each.name == score]
    return one
