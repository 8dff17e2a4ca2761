"""One way to measure a claim."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from overheard.core.claims import Claim
from overheard.core.scorer import Better

C = TypeVar("C", bound=Claim)


@final
@dataclass(frozen=True, slots=True)
class Yardstick(Generic[C]):
    """One way to measure a claim.

    Args:
        name: of the score.
        better: the direction of a better claim.
        measure: gives the figure from a claim and the truth, both in float64; None where the
            claim makes no such statement.
        guessable: False where a guess is perfect by saying nothing.

    """

    name: str
    better: Better
    measure: Callable[[C, C], float | None]
    guessable: bool = True

    def of_each(self, claims: Mapping[str, C], truth: C) -> dict[str, float]:
        """Give the figure for each guess that makes such a statement."""
        if not self.guessable:
            return {}
        values = {name: self.measure(claim, truth) for name, claim in claims.items()}
        return {name: value for name, value in values.items() if value is not None}
