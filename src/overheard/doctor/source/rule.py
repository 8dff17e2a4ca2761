"""The contract of a rule on source code."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from overheard.doctor.criticism import DescribedRule
from overheard.doctor.source.code import Place
from overheard.doctor.source.privacy import PrivateApp


@final
@dataclass(frozen=True, slots=True)
class CodeFault:
    """A fault that a rule found.

    Args:
        what: what is wrong, in one or two sentences.
        places: the lines of code that show it; the first one is where it is.

    """

    what: str
    places: tuple[Place, ...]


@final
@dataclass(frozen=True, slots=True)
class UnclearCode:
    """Something that a rule could not see.

    Args:
        why: what, where, and what would show it.

    """

    why: str


Seen = Iterator[CodeFault | UnclearCode]
"""What a rule yields; nothing = it looked and found no fault."""


class SourceRule(DescribedRule):
    """A rule on the source code of an app.

    A concrete rule is a final class in a file of `doctor.source.rules`, where it is found by
    itself. It yields a fault only for code that shows it.
    """

    @abstractmethod
    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the app has anything that the rule is about."""

    @abstractmethod
    def examine(self, app: PrivateApp) -> Seen:
        """Yield faults, and what cannot be seen."""
