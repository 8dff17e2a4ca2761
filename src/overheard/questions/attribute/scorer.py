"""The scorer of claimed attributes."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import Party
from overheard.core.scorer import Better, Guesses, Score, Scorer
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.questions.attribute.claim import Attribute
from overheard.statistics.tied_rank import rank_candidate

PROBABILITY_FLOOR = 1e-12
"""Least probability inside the logarithm of `log_loss`, so that certainty in a wrong value has
a finite cost."""


@final
@dataclass(frozen=True, slots=True)
class AttributeScorer(Scorer[Attribute]):
    """Compares the claimed probabilities of attribute values with the true value.

    - `accuracy`: 1 if the true value has the highest probability, else 0; tied values share the
      1 equally.
    - `log_loss`: -ln of the probability of the true value, which counts as at least 1e-12; in
      nats.

    There are two uninformed guesses. `majority` has the frequency of each value among the
    attacker's known users, with 1 added to each count (Laplace); `uniform` has equal
    probabilities. If no known user has the true value, neither guess includes it.

    The balanced accuracy uses all targets: see the question's `summary_rows`.
    """

    name: ClassVar[str] = "attribute"
    claim_type: ClassVar[type[Claim]] = Attribute
    headline: ClassVar[str] = "accuracy"
    source: ClassVar[str] = (
        "Orekondy et al. (Gradient-Leaks, arXiv 1805.05838), attribute heads; Melis et al. "
        "(S&P 2019) ask the same of a batch"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Attribute
    ) -> Attribute:
        """Return the true value of the claimed attribute, among the claimed values.

        A true value that is not among them is added at the end.

        Raises:
            NeedsError: if the ground truth does not state the target's user or attribute.

        """
        user = truth.facts.need(UsersOfClients).user_of(target)
        attributes = truth.facts.need(Attributes).attributes
        known = attributes.get(claim.attribute, {})
        if user not in known:
            raise NeedsError(
                f"the ground truth has no {claim.attribute} of {target}; it has these "
                f"attributes: {', '.join(sorted(attributes)) or 'none'}"
            )
        values = tuple(dict.fromkeys((*claim.values, known[user])))
        return Attribute(
            claim.attribute, values, torch.tensor([float(v == known[user]) for v in values])
        )

    def uninformed_guesses(
        self, claim: Attribute, knowledge: Knowledge
    ) -> Mapping[str, Attribute]:
        """Guess the frequencies among known users, and equal probabilities."""
        values = claim.values
        uniform = Attribute(
            claim.attribute, values, torch.full((len(values),), 1 / len(values))
        )
        known = KnownUsers.of(knowledge).attributes.get(claim.attribute)
        if not known:
            return {"uniform": uniform}
        occurrences = Counter(known.values())
        counts = torch.tensor([1.0 + occurrences[value] for value in values])
        majority = Attribute(claim.attribute, values, counts / counts.sum())
        return {"majority": majority, "uniform": uniform}

    def informed_guesses(self, truth: Attribute) -> Mapping[str, Attribute]:
        """Return no guess: no part of the truth can be known separately."""
        return {}

    def score(
        self, claim: Attribute, truth: Attribute, guesses: Guesses[Attribute]
    ) -> tuple[Score, ...]:
        """Return both scores.

        Raises:
            ValueError: if the claim and the truth are about different attributes.

        """
        if claim.attribute != truth.attribute:
            raise ClaimError(
                f"the claim is about {claim.attribute}, the truth about {truth.attribute}"
            )
        true = truth.values[int(truth.probabilities.argmax())]
        measures: tuple[tuple[str, Better, Callable[[Attribute, str], float]], ...] = (
            ("accuracy", "higher", _accuracy),
            ("log_loss", "lower", _log_loss),
        )
        return tuple(
            Score(
                name,
                measure(claim, true),
                better,
                {guess: measure(one, true) for guess, one in guesses.uninformed.items()},
                {},
            )
            for name, better, measure in measures
        )


def _accuracy(claim: Attribute, true: str) -> float:
    if true not in claim.values:
        return 0.0
    return rank_candidate(claim.probabilities, claim.values.index(true)).probability_within(1)


def _log_loss(claim: Attribute, true: str) -> float:
    probabilities = dict(zip(claim.values, claim.probabilities.tolist(), strict=True))
    return -log(max(probabilities.get(true, 0.0), PROBABILITY_FLOOR))
