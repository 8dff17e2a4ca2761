"""Holds what is claimed of a person's attribute against its true value."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar, final

import torch

from overheard.core.claims import Claim
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Better, Guesses, Score, Scorer
from overheard.core.truth import GroundTruth, true_user
from overheard.questions.attribute.claim import Attribute
from overheard.statistics.places import place

CHANCE_FLOOR = 1e-12
"""The least chance under the logarithm of `log_loss`: being wrong for certain costs much, and
not all."""


@final
@dataclass(frozen=True, slots=True)
class AttributeScorer(Scorer[Attribute]):
    """How well the value of an attribute is told.

    - `accuracy`: 1 if the true value has the highest probability, else 0; values that tie for
      it are each named with the same chance.
    - `log_loss`: -ln of the probability of the true value, taken as 1e-12 at least; in nats.

    Blind are `majority`, whose probabilities are how often each value occurs among the users
    whom the attacker knows, 1 added to each count (Laplace); and `uniform`. A value that no
    known user has may be true of a target; nobody then names it.

    The mean of the accuracies over true values takes all targets: see
    `auditing.identification`.
    """

    name: ClassVar[str] = "attribute"
    claim: ClassVar[type[Claim]] = Attribute
    headline: ClassVar[str] = "accuracy"
    source: ClassVar[str] = (
        "Orekondy et al. (Gradient-Leaks, arXiv 1805.05838), attribute heads; Melis et al. "
        "(S&P 2019) ask the same of a batch"
    )

    def truth(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Attribute
    ) -> Attribute:
        """The true value of the attribute that the claim is about, among the values it names.

        A true value that it does not name comes last.

        Raises:
            NeedsError: if the truth does not say who the target is, or what it is like.

        """
        who = true_user(truth, target)
        known = truth.attributes.get(claim.attribute, {})
        if who not in known:
            raise NeedsError(
                f"the {claim.attribute} of {target} the ground truth does not say: ask for "
                f"one of {', '.join(sorted(truth.attributes)) or 'none, for it has none'}"
            )
        values = tuple(dict.fromkeys((*claim.values, known[who])))
        return Attribute(
            claim.attribute, values, torch.tensor([float(v == known[who]) for v in values])
        )

    def blind(self, asked: Attribute, knowledge: Knowledge) -> Mapping[str, Attribute]:
        """As the known users are; all values alike."""
        values = asked.values
        uniform = Attribute(
            asked.attribute, values, torch.full((len(values),), 1 / len(values))
        )
        told = knowledge.people.attributes.get(asked.attribute)
        if not told:
            return {"uniform": uniform}
        often = Counter(told.values())
        counts = torch.tensor([1.0 + often[value] for value in values])
        majority = Attribute(asked.attribute, values, counts / counts.sum())
        return {"majority": majority, "uniform": uniform}

    def told(self, truth: Attribute) -> Mapping[str, Attribute]:
        """Nobody is told a part."""
        return {}

    def score(
        self, claim: Attribute, truth: Attribute, guesses: Guesses[Attribute]
    ) -> tuple[Score, ...]:
        """Both figures told above.

        Raises:
            ValueError: if the claim is about another attribute than the truth.

        """
        if claim.attribute != truth.attribute:
            raise ValueError(f"{claim.attribute} was claimed, {truth.attribute} asked for")
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
                {guess: measure(one, true) for guess, one in guesses.blind.items()},
                {},
            )
            for name, better, measure in measures
        )


def _accuracy(claim: Attribute, true: str) -> float:
    if true not in claim.values:
        return 0.0
    return place(claim.probabilities, claim.values.index(true)).within(1)


def _log_loss(claim: Attribute, true: str) -> float:
    named = dict(zip(claim.values, claim.probabilities.tolist(), strict=True))
    return -log(max(named.get(true, 0.0), CHANCE_FLOOR))
