"""A scorer that compares the claim with the clients' numbers of examples."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import median
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
    """The Brier score, and whether the more probable answer is right."""

    name: ClassVar[str] = "larger_half"
    claim_type: ClassVar = LargerHalf
    headline: ClassVar[str] = "brier"
    source: ClassVar[str] = "Brier 1950 (Monthly Weather Review 78)"

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: LargerHalf
    ) -> LargerHalf:
        """Return whether the target holds the median number of examples or more."""
        sizes = Counter[Party]()
        for (number, party), size in truth.facts.need(ClientSizes).sizes.items():
            if number in rounds:
                sizes[party] += size
        return LargerHalf(float(sizes[target] >= median(sizes.values())))

    def uninformed_guesses(
        self, asked: LargerHalf, knowledge: Knowledge
    ) -> Mapping[str, LargerHalf]:
        """Return the uninformed guess: either half is equally likely."""
        return {"a coin": LargerHalf(0.5)}

    def informed_guesses(self, truth: LargerHalf) -> Mapping[str, LargerHalf]:
        """Return no informed guesses."""
        return {}

    def score(
        self, claim: LargerHalf, truth: LargerHalf, guesses: Guesses[LargerHalf]
    ) -> tuple[Score, ...]:
        """Score a claim: lower is better for the Brier score, higher for the hit."""
        blinds = guesses.uninformed.items()
        return (
            Score(
                "brier",
                _brier(claim, truth),
                "lower",
                {name: _brier(guess, truth) for name, guess in blinds},
                {},
            ),
            Score(
                "hit",
                _hit(claim, truth),
                "higher",
                {name: _hit(guess, truth) for name, guess in blinds},
                {},
            ),
        )


def _brier(claim: LargerHalf, truth: LargerHalf) -> float:
    return (claim.chance - truth.chance) ** 2


def _hit(claim: LargerHalf, truth: LargerHalf) -> float:
    if claim.chance == 0.5:
        return 0.5
    return float((claim.chance > 0.5) == (truth.chance > 0.5))
