"""Virtual clients that train on the prior examples of known users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch

from overheard.core.examples import Examples, concatenate_examples


@final
@dataclass(frozen=True, slots=True)
class PriorClient:
    """A virtual client with one chunk of a known user's prior examples.

    Its repr is part of cache keys.

    Args:
        user: name of the user.
        chunk: number of the chunk; 0 is the earliest.
        begin: its first row in the concatenated examples of all users.
        end: the row after its last.

    """

    user: str
    chunk: int
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The party's name, from which its seeds are derived."""
        return f"known/{self.user}/{self.chunk}"

    def select_examples(self, users: Examples) -> Examples:
        """Select the chunk from the concatenated examples of all users."""
        return users.take(torch.arange(self.begin, self.end))


def split_priors(users: Mapping[str, Examples], chunks: int) -> tuple[PriorClient, ...]:
    """Split each user's examples into this many chunks, or one chunk an example if fewer."""
    clients, begin = [], 0
    for user, examples in users.items():
        count = min(chunks, len(examples))
        for chunk in range(count):
            ends = [begin + len(examples) * cut // count for cut in (chunk, chunk + 1)]
            clients.append(PriorClient(user, chunk, *ends))
        begin += len(examples)
    return tuple(clients)


def concatenate_users(users: Mapping[str, Examples]) -> Examples:
    """Concatenate the examples of all users; `PriorClient` rows refer to the result."""
    return concatenate_examples(tuple(users.values()))
