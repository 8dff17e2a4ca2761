"""A metric that scores claims against the truth."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from overheard.core.claims import Claim
from overheard.core.scorer import Better

C = TypeVar("C", bound=Claim)


@final
@dataclass(frozen=True, slots=True)
class ScoreMetric(Generic[C]):
    """A metric that scores claims against the truth.

    Args:
        name: the name of the score.
        better: whether lower or higher is better.
        measure: computes the score from a claim and the truth, in float64; None if the claim
            makes no statement to score.
        is_guessable: False if an empty guess would be perfect, so that guesses are not scored.

    """

    name: str
    better: Better
    measure: Callable[[C, C], float | None]
    is_guessable: bool = True

    def measure_each(self, claims: Mapping[str, C], truth: C) -> dict[str, float]:
        """Score each guess that makes a statement to score."""
        if not self.is_guessable:
            return {}
        values = {name: self.measure(claim, truth) for name, claim in claims.items()}
        return {name: value for name, value in values.items() if value is not None}
