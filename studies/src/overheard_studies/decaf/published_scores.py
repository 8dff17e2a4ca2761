"""Published claims scored by Overheard's scorer, so that both are measured the same way."""

from collections.abc import Sequence

from overheard.core.knowledge import Knowledge
from overheard.core.scorer import Score
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard_studies.decaf.published_users import PublishedUser


def mean_published_score(users: Sequence[PublishedUser], score: str) -> float:
    """Return the mean score of the paper's attack over a table's users."""
    return sum(score_published_claim(user, score).value for user in users) / len(users)


def mean_published_guess_score(users: Sequence[PublishedUser], score: str, guess: str) -> float:
    """Return the mean score of a guess over a table's users."""
    values = []
    for user in users:
        one = score_published_claim(user, score)
        values.append({**one.blinds, **one.references}[guess])
    return sum(values) / len(values)


def score_published_claim(user: PublishedUser, score: str) -> Score:
    """Score the paper's attack on one user."""
    scorer, truth = LabelSharesScorer(), user.truth()
    guesses = scorer.guesses(truth, Knowledge(classes=len(user.true_percents)))
    (one,) = [each for each in scorer.score(user.claim(), truth, guesses) if each.name == score]
    return one
