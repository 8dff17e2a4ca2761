"""The contract of a scorer, and the score that it gives."""

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
    """One figure of merit, beside what guesses that heard nothing get.

    Args:
        name: such as "l1".
        value: what the claim gets.
        better: the direction of a better claim.
        blinds: the same figure for each guess that heard nothing, by the guess's name; empty
            where no blind guess can make such a statement.
        references: the same figure for guesses that were told a part of the truth; no attack
            has to beat them, yet a good one does.

    """

    name: str
    value: float
    better: Better
    blinds: Mapping[str, float]
    references: Mapping[str, float]

    @property
    def blind(self) -> float | None:
        """The best of the blind guesses."""
        if not self.blinds:
            return None
        best = min if self.better == "lower" else max
        return best(self.blinds.values())

    @property
    def gain(self) -> float | None:
        """How much better than the best blind guess; above 0 = the run leaked."""
        if self.blind is None:
            return None
        return self.blind - self.value if self.better == "lower" else self.value - self.blind


@dataclass(frozen=True, slots=True)
class Guesses(Generic[C]):
    """The answers to hold a claim against.

    Args:
        blind: of one who heard nothing, by name; the first is the customary one.
        told: of one who was told a part of the truth, by name.

    """

    blind: Mapping[str, C]
    told: Mapping[str, C]


class Scorer(ABC, Generic[C]):
    """Knows one question: the true answer, the blind ones, and how far apart two are."""

    name: ClassVar[str]
    claim: ClassVar[type[Claim]]
    headline: ClassVar[str]
    """The name of the score by which the question is told in one sentence."""
    source: ClassVar[str]

    @abstractmethod
    def truth(self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: C) -> C:
        """The answer that the ground truth gives for these rounds.

        Of the claim, which is to be held against it, only what it is about is looked at, where
        a question leaves that open: which attribute, or which others a target is compared with.
        """

    @abstractmethod
    def blind(self, asked: C, knowledge: Knowledge) -> Mapping[str, C]:
        """The answers of those who heard nothing, by the guess; the customary one first.

        Of an answer to the same question, right or wrong, only what it is about is looked at,
        as by `truth`.
        """

    @abstractmethod
    def told(self, truth: C) -> Mapping[str, C]:
        """The answers of those who were told a part of the truth, by the guess."""

    def guesses(self, truth: C, knowledge: Knowledge) -> Guesses[C]:
        """The answers of those who heard nothing, and of those told a part of the truth."""
        return Guesses(self.blind(truth, knowledge), self.told(truth))

    @abstractmethod
    def score(self, claim: C, truth: C, guesses: Guesses[C]) -> tuple[Score, ...]:
        """Hold a claim, and each guess, against the truth."""
