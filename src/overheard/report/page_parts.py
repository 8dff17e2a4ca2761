"""Makes the parts of a page; one that fails leaves the rest, with a sentence in its place."""

from collections.abc import Callable, Iterable
from typing import TypeVar, final

from overheard.core.failures import describe_internal_error

T = TypeVar("T")


@final
class PageParts:
    """Makes the parts of a page, and keeps why Overheard failed to make some of them."""

    def __init__(self) -> None:
        self._failures = list[str]()

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence on each part that is not there."""
        return tuple(self._failures)

    def make(self, name: str, part: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """Return the items of a part of the page; none if Overheard fails to make it.

        Args:
            name: what readers call the part.
            part: makes its items.

        """
        try:
            return tuple(part())
        except Exception as error:
            what = f"Not on this page, since Overheard failed: {name}. It"
            self._failures.append(f"{describe_internal_error(what, error)}.")
            return ()
