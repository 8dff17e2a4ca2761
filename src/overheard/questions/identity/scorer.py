"""The scorer of claims about which known user is behind a target."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.questions.identity.claim import Identity
from overheard.statistics.tied_rank import TiedRank, rank_candidate

TOP_K = 5
"""The number of guesses that `top5` allows."""


@final
@dataclass(frozen=True, slots=True)
class IdentityScorer(Scorer[Identity]):
    """Rank of the true user among all users known to the attacker.

    For a target that is one of the known users:

    - `top1`: 1 if the true user has the highest score, else 0. `top5` (with 6 or more users):
      1 if it is among the five highest. Users with equal scores share their ranks with equal
      probability, so an attack with equal scores for all U users gets 1 / U and 5 / U.
    - `reciprocal_rank`: 1 / rank, by the same rule.

    The uninformed guess is a random order of the known users. If the claim leaves the true user
    out, all three scores are 0.

    For every target, if the claim gives a probability that it is none of the known users:

    - `unseen`: (probability - truth)^2 (Brier 1950); the truth is 1 for a target unknown to the
      attacker, else 0. The uninformed guess is 0.5, which always scores 0.25. The base rate of
      unknown targets is in `statistics.identity_rows`.

    Scores that take all targets of a run together, such as average precision, are also in
    `statistics.identity_rows`.
    """

    name: ClassVar[str] = "identity"
    claim_type: ClassVar[type[Claim]] = Identity
    headline: ClassVar[str] = "top1"
    source: ClassVar[str] = (
        "Orekondy et al. (Gradient-Leaks, arXiv 1805.05838), section 6: top-1, top-5; ties, "
        "the reciprocal rank and the probability of an unknown user are Overheard's"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Identity
    ) -> Identity:
        """Return the true user, whether or not the attacker knows it.

        Raises:
            NeedsError: if the ground truth does not name the user behind the target.

        """
        return Identity((truth.facts.need(UsersOfClients).user_of(target),), torch.ones(1))

    def uninformed_guesses(
        self, claim: Identity, knowledge: Knowledge
    ) -> Mapping[str, Identity]:
        """Return equal scores for all known users, and even odds of an unknown user."""
        known = tuple(KnownUsers.of(knowledge).prior_examples)
        if not known:
            return {}
        return {"a random order": Identity(known, torch.zeros(len(known)), 0.5)}

    def informed_guesses(self, truth: Identity) -> Mapping[str, Identity]:
        """Return nothing: no guess knows part of the truth."""
        return {}

    def score(
        self, claim: Identity, truth: Identity, guesses: Guesses[Identity]
    ) -> tuple[Score, ...]:
        """Return every score that applies to the claim, in the order of the class docstring.

        Raises:
            ValueError: if the ground truth names more than one user.

        """
        (true_name,) = truth.users
        candidate_users = set(claim.users).union(
            *(guess.users for guess in guesses.uninformed.values())
        )
        scores = []
        if true_name in candidate_users:
            ranks = [("top1", _hit_within(1)), ("reciprocal_rank", TiedRank.reciprocal_rank)]
            if len(candidate_users) > TOP_K:
                ranks.insert(1, ("top5", _hit_within(TOP_K)))
            for name, measure in ranks:
                uninformed = {
                    guess_name: _rank_score(guess, true_name, measure)
                    for guess_name, guess in guesses.uninformed.items()
                }
                scores.append(
                    Score(
                        name, _rank_score(claim, true_name, measure), "higher", uninformed, {}
                    )
                )
        if claim.unseen is not None:
            uninformed = {
                name: _squared_error(guess.unseen, true_name not in candidate_users)
                for name, guess in guesses.uninformed.items()
                if guess.unseen is not None
            }
            error = _squared_error(claim.unseen, true_name not in candidate_users)
            scores.append(Score("unseen", error, "lower", uninformed, {}))
        return tuple(scores)


def _hit_within(length: int) -> Callable[[TiedRank], float]:
    return lambda rank: rank.probability_within(length)


def _rank_score(claim: Identity, true_name: str, measure: Callable[[TiedRank], float]) -> float:
    if true_name not in claim.users:
        return 0.0
    return measure(rank_candidate(claim.scores, claim.users.index(true_name)))


def _squared_error(probability: float, is_unseen: bool) -> float:
    return (probability - is_unseen) ** 2
