"""Holds what is claimed of who a target is against who it is."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth, true_user
from overheard.questions.identity.claim import Identity
from overheard.statistics.places import Place, place

TOP = 5
"""How many names `top5` lets an attacker give."""


@final
@dataclass(frozen=True, slots=True)
class IdentityScorer(Scorer[Identity]):
    """Where the true user stands among all whom an attacker knows.

    Of a target who is one of the known users:

    - `top1`: 1 if the true user has the highest score, else 0; `top5` (from 6 users on): if it
      is among the five highest. Users with alike scores share their places, and each stands in
      any of them with the same chance: an attack that scores all alike gets 1 / U and 5 / U.
    - `reciprocal_rank`: 1 / rank, by the same rule.

    The blind guess is a random order of the known users. A known user whom the claim leaves
    out is found by nobody: all three are 0.

    Only where the claim gives a chance that it is none of the known users, and of every target:

    - `unseen`: (chance - truth)^2 (Brier 1950), the truth being 1 for a target whom the
      attacker does not know, else 0. The blind guess says 0.5, and gets 0.25 whatever the
      truth; how common unknown targets are is told in `auditing.identification`.

    How well targets are ranked for a user (average precision), and pairs are matched, takes
    all targets of a run together: see there too.
    """

    name: ClassVar[str] = "identity"
    claim: ClassVar[type[Claim]] = Identity
    headline: ClassVar[str] = "top1"
    source: ClassVar[str] = (
        "Orekondy et al. (Gradient-Leaks, arXiv 1805.05838), section 6: top-1, top-5; ties, "
        "the reciprocal rank and the chance of an unseen user are ours"
    )

    def truth(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Identity
    ) -> Identity:
        """The true user alone, whether or not the attacker knows it.

        Raises:
            NeedsError: if the truth does not say who the target is.

        """
        return Identity((true_user(truth, target),), torch.ones(1))

    def blind(self, asked: Identity, knowledge: Knowledge) -> Mapping[str, Identity]:
        """All known users alike, and even odds that it is none of them."""
        known = tuple(knowledge.people.priors)
        if not known:
            return {}
        return {"a random order": Identity(known, torch.zeros(len(known)), 0.5)}

    def told(self, truth: Identity) -> Mapping[str, Identity]:
        """Nobody is told a part."""
        return {}

    def score(
        self, claim: Identity, truth: Identity, guesses: Guesses[Identity]
    ) -> tuple[Score, ...]:
        """Every figure for which the claim makes a statement, in the order told above.

        Raises:
            ValueError: if the truth names more than one user.

        """
        (who,) = truth.users
        known = set(claim.users).union(*(guess.users for guess in guesses.blind.values()))
        scores = []
        if who in known:
            ranks = [("top1", _within(1)), ("reciprocal_rank", Place.reciprocal_rank)]
            if len(known) > TOP:
                ranks.insert(1, ("top5", _within(TOP)))
            for name, measure in ranks:
                blinds = {n: _measured(g, who, measure) for n, g in guesses.blind.items()}
                scores.append(Score(name, _measured(claim, who, measure), "higher", blinds, {}))
        if claim.unseen is not None:
            blinds = {
                name: _squared_error(guess.unseen, who not in known)
                for name, guess in guesses.blind.items()
                if guess.unseen is not None
            }
            error = _squared_error(claim.unseen, who not in known)
            scores.append(Score("unseen", error, "lower", blinds, {}))
        return tuple(scores)


def _within(length: int) -> Callable[[Place], float]:
    return lambda found: found.within(length)


def _measured(claim: Identity, who: str, measure: Callable[[Place], float]) -> float:
    if who not in claim.users:
        return 0.0
    return measure(place(claim.scores, claim.users.index(who)))


def _squared_error(chance: float, is_unseen: bool) -> float:
    return (chance - is_unseen) ** 2
