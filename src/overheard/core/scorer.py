"""The contract of a scorer, and the scores that it returns."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.truth import GroundTruth

C = TypeVar("C", bound=Claim)

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Score:
    """A score of a claim, with the scores of uninformed and informed guesses.

    Args:
        name: such as "l1".
        value: score of the claim.
        better: whether lower or higher is better.
        uninformed: scores of the uninformed guesses, by the guess's name; empty where such a
            guess cannot be scored.
        references: scores of guesses that use a part of the truth. An attack need not beat
            them, but a good one does.

    """

    name: str
    value: float
    better: Better
    uninformed: Mapping[str, float]
    references: Mapping[str, float]

    @property
    def best_uninformed(self) -> float | None:
        """The best score among the uninformed guesses."""
        if not self.uninformed:
            return None
        best = min if self.better == "lower" else max
        return best(self.uninformed.values())

    @property
    def gain(self) -> float | None:
        """Improvement over the best uninformed guess; above 0 = the run leaked."""
        if self.best_uninformed is None:
            return None
        return (
            self.best_uninformed - self.value
            if self.better == "lower"
            else self.value - self.best_uninformed
        )


@dataclass(frozen=True, slots=True)
class Guesses(Generic[C]):
    """Guesses to compare a claim with.

    Args:
        uninformed: uninformed guesses by name; the first is the standard one.
        informed: guesses that use a part of the truth, by name.

    """

    uninformed: Mapping[str, C]
    informed: Mapping[str, C]


class Scorer(ABC, Generic[C]):
    """Scores claims about one question against the truth, and provides guesses for it."""

    name: ClassVar[str]
    claim_type: ClassVar[type[Claim]]
    headline: ClassVar[str]
    """The name of the score that one-sentence summaries state."""
    source: ClassVar[str]

    @abstractmethod
    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: C
    ) -> C:
        """Return the true claim about a target for these rounds.

        The target of a joint claim is `COHORT`, as it is of a claim about the cohort; whom the
        joint claim is about is a field of it.

        From `claim`, only its subject is used, where the question leaves that open: which
        attribute it is about, which other parties the target is compared with, or which targets
        it is about.
        """

    @abstractmethod
    def uninformed_guesses(self, claim: C, knowledge: Knowledge) -> Mapping[str, C]:
        """Return the uninformed guesses by name, the standard one first.

        From `claim`, a claim about the same question, only its subject is used, as in
        `true_claim`.

        Raises:
            ClaimError: if the subject is not what was asked, such as another number of labels.

        """

    @abstractmethod
    def informed_guesses(self, truth: C) -> Mapping[str, C]:
        """Return the guesses that use a part of the truth, by name."""

    def guesses(self, truth: C, knowledge: Knowledge) -> Guesses[C]:
        """Return the uninformed guesses and those that use a part of the truth."""
        return Guesses(self.uninformed_guesses(truth, knowledge), self.informed_guesses(truth))

    @abstractmethod
    def score(self, claim: C, truth: C, guesses: Guesses[C]) -> tuple[Score, ...]:
        """Score a claim, and each guess, against the truth."""
