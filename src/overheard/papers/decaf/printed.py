"""Published claims scored by Overheard's scorer, so that both are measured the same way."""

from collections.abc import Sequence

from overheard.core.knowledge import Knowledge
from overheard.core.scorer import Score
from overheard.papers.decaf.users import User
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer


def printed_mean(users: Sequence[User], score: str) -> float:
    """Return the mean score of the paper's attack over a table's users."""
    return sum(printed(user, score).value for user in users) / len(users)


def printed_mean_guess(users: Sequence[User], score: str, guess: str) -> float:
    """Return the mean score of a guess over a table's users."""
    values = []
    for user in users:
        one = printed(user, score)
        values.append({**one.blinds, **one.references}[guess])
    return sum(values) / len(values)


def printed(user: User, score: str) -> Score:
    """Score the paper's attack on one user."""
    scorer, truth = LabelSharesScorer(), user.truth()
    guesses = scorer.guesses(truth, Knowledge(classes=len(user.true)))
    (one,) = [each for each in scorer.score(user.claim(), truth, guesses) if each.name == score]
    return one
