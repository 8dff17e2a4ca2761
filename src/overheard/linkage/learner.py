"""Prior examples of a known user, on which the attacker trains as if they were a client's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.examples import Examples, joined


@final
@dataclass(frozen=True, slots=True)
class PriorClient:
    """A piece of a known user's prior; plain values, so that its repr is its record.

    Args:
        user: whose.
        chunk: which piece, the earliest being 0.
        begin: its first row among the examples of all users, one user after another.
        end: the row after its last.

    """

    user: str
    chunk: int
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The party that it plays, on whose name its draws hang."""
        return f"known/{self.user}/{self.chunk}"

    def held(self, users: Examples) -> Examples:
        """The piece, cut out of the examples of all users."""
        rows = slice(self.begin, self.end)
        return Examples(users.inputs[rows], users.labels[rows])


def learners_of(people: Mapping[str, Examples], chunks: int) -> tuple[PriorClient, ...]:
    """Cut the examples of each user into so many pieces, or as many as there are examples."""
    learners, begin = [], 0
    for user, examples in people.items():
        pieces = min(chunks, len(examples))
        for chunk in range(pieces):
            ends = [begin + len(examples) * cut // pieces for cut in (chunk, chunk + 1)]
            learners.append(PriorClient(user, chunk, *ends))
        begin += len(examples)
    return tuple(learners)


def together(people: Mapping[str, Examples]) -> Examples:
    """The examples of all users, one user after another, which learners have their rows of."""
    return joined(tuple(people.values()))
