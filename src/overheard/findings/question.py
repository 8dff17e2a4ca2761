"""The contract of a question, such as who sent an update."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from overheard.core.claims import Claim
from overheard.core.scorer import Scorer

C = TypeVar("C", bound=Claim)


class Question(ABC, Generic[C]):
    """What an attacker may ask about a target: all that an audit must know of it.

    A concrete question is a final frozen dataclass without fields, in the folder of its name.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where its figures of merit come from: authors, year, section or equation."""

    @property
    @abstractmethod
    def scorer(self) -> Scorer[C]:
        """What holds claims that answer the question against the truth."""
