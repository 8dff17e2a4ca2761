"""Facts by subject, at most one of each kind: the base of what is true and what is known."""

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, final

from overheard.core.errors import NeedsError


class Fact(ABC):
    """A fact on one subject, such as which user each client is.

    What is true of a run (`core.truth`) and what an attacker knows (`core.knowledge`) are facts
    of different bases, so that neither gets into the place of the other.
    """

    how_to_get: ClassVar[str]
    """Ends the error where the fact is missing: what to add, and where."""


F = TypeVar("F", bound=Fact)
K = TypeVar("K", bound=Fact)


@final
@dataclass(frozen=True, init=False)
class Facts(Generic[F]):
    """Facts, at most one of each kind.

    Args:
        facts: the facts, each of a kind (class) of its own.

    Raises:
        ValueError: if two facts are of one kind.

    """

    facts: tuple[F, ...]

    def __init__(self, *facts: F) -> None:
        """Take the facts, and refuse two of one kind."""
        names = [type(fact).__name__ for fact in facts]
        if len({type(fact) for fact in facts}) != len(names):
            raise ValueError(f"there must be one fact of each kind, got {', '.join(names)}")
        object.__setattr__(self, "facts", facts)

    def __iter__(self) -> Iterator[F]:
        """Yield the facts in their order."""
        return iter(self.facts)

    def get(self, kind: type[K]) -> K | None:
        """Return the fact of this kind; None if there is none."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    def need(self, kind: type[K]) -> K:
        """Return the fact of this kind.

        Raises:
            NeedsError: if there is none; it says how to get one.

        """
        fact = self.get(kind)
        if fact is None:
            raise NeedsError(kind.how_to_get)
        return fact

    def having(self, fact: F) -> "Facts[F]":
        """Return these facts with this one, in place of one of its kind."""
        others = tuple(held for held in self.facts if type(held) is not type(fact))
        return Facts(*others, fact)
