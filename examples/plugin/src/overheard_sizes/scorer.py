"""A scorer that compares the claim with the clients' numbers of examples."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import ClassVar, final

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard_sizes.claim import LargerHalf
from overheard_sizes.true_facts import ClientSizes


@final
@dataclass(frozen=True, slots=True)
class LargerHalfScorer(Scorer[LargerHalf]):
    """The Brier score, and whether the more probable answer is right: means over clients."""

    name: ClassVar[str] = "larger_half"
    claim_type: ClassVar = LargerHalf
    headline: ClassVar[str] = "brier"
    source: ClassVar[str] = "Brier 1950 (Monthly Weather Review 78)"

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: LargerHalf
    ) -> LargerHalf:
        """Return which of the claim's clients hold as much as the median client or more."""
        sizes = Counter[Party]()
        for (number, party), size in truth.facts.need(ClientSizes).sizes.items():
            if number in rounds:
                sizes[party] += size
        middle = median(sizes.values())
        return LargerHalf(
            claim.clients, tuple(float(sizes[one] >= middle) for one in claim.clients)
        )

    def uninformed_guesses(
        self, claim: LargerHalf, knowledge: Knowledge
    ) -> Mapping[str, LargerHalf]:
        """Return the uninformed guess: either half is equally likely."""
        return {"a coin": LargerHalf(claim.clients, (0.5,) * len(claim.clients))}

    def informed_guesses(self, truth: LargerHalf) -> Mapping[str, LargerHalf]:
        """Return no informed guesses."""
        return {}

    def score(
        self, claim: LargerHalf, truth: LargerHalf, guesses: Guesses[LargerHalf]
    ) -> tuple[Score, ...]:
        """Score a claim: lower is better for the Brier score, higher for the hit."""
        uninformed = guesses.uninformed.items()
        return (
            Score(
                "brier",
                _brier(claim, truth),
                "lower",
                {name: _brier(guess, truth) for name, guess in uninformed},
                {},
            ),
            Score(
                "hit",
                _hit(claim, truth),
                "higher",
                {name: _hit(guess, truth) for name, guess in uninformed},
                {},
            ),
        )


def _brier(claim: LargerHalf, truth: LargerHalf) -> float:
    pairs = zip(claim.chances, truth.chances, strict=True)
    return fmean((chance - true) ** 2 for chance, true in pairs)


def _hit(claim: LargerHalf, truth: LargerHalf) -> float:
    pairs = zip(claim.chances, truth.chances, strict=True)
    return fmean(
        0.5 if chance == 0.5 else float((chance > 0.5) == (true > 0.5))
        for chance, true in pairs
    )
