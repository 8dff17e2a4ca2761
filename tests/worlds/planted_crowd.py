"""Known users and pseudonyms whose every update is planted, so that nothing need be trained."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.messages import Message, Update
from overheard.core.parties import SERVER, Party, shadow
from overheard.core.seeds import Seed
from overheard.core.view import View

DIMS = 40
"""Numbers of an update; half of them belong to each of two values of an attribute."""

VALUES = ("left", "right")


def user(number: int) -> str:
    return f"user {number:02d}"


def pseudonym(number: int, of: int) -> Party:
    """Of one user in one round."""
    return Party(f"anon/{number}-{of}")


def said(
    number: int,
    who: Party,
    delta: Tensor | None = None,
    examples: int | None = None,
    metrics: Mapping[str, float] | None = None,
) -> Message:
    body = Update(
        {"out.weight": torch.zeros(1) if delta is None else delta}, examples, metrics or {}
    )
    return Message(number, who, frozenset({SERVER}), body)


def heard(*messages: Message) -> View:
    return View(frozenset({SERVER}), messages)


def prior(examples: int) -> Examples:
    return Examples(torch.zeros(examples, 2), torch.arange(examples) % 2)


@dataclass(frozen=True)
class Crowd:
    """Users who take part, as many who do not, and shadow devices of all of them.

    Args:
        style: how far each user's updates lie off those of others.
        leak: how far an attribute moves them.
        users: who take part.
        rounds: in which everybody answers.

    """

    style: float
    leak: float
    users: int = 16
    rounds: int = 3
    value: Callable[[int], str] = field(default=lambda number: VALUES[number // 2 % 2])

    def view(self) -> View:
        """Device n and, under a name of the round, client n answer for user n."""
        messages = []
        for number in range(self.rounds):
            for who in range(2 * self.users):
                messages.append(said(number, shadow(who), self._delta("device", who, number)))
            for who in range(self.users):
                delta = self._delta("client", who, number)
                messages.append(said(number, pseudonym(number, who), delta))
        return heard(*messages)

    def knowledge(self) -> Knowledge:
        everyone = range(2 * self.users)
        people = KnownUsers(
            {user(who): prior(4) for who in everyone[: self.users]},
            {user(who): prior(4) for who in everyone[self.users :]},
            {shadow(who): user(who) for who in everyone},
            attributes={"side": {user(who): self.value(who) for who in everyone}},
        )
        return Knowledge(2, people=people)

    def targets(self) -> dict[Party, int]:
        """Every pseudonym, and the user behind it."""
        return {
            pseudonym(number, who): who
            for number in range(self.rounds)
            for who in range(self.users)
        }

    def _delta(self, kind: str, who: int, number: int) -> Tensor:
        own = Seed(5).child("style", who).generator()
        noise = Seed(5).child(kind, who, number).generator()
        delta = self.style * torch.randn(DIMS, generator=own)
        delta += 0.3 * torch.randn(DIMS, generator=noise)
        half = slice(DIMS // 2) if self.value(who) == VALUES[0] else slice(DIMS // 2, None)
        delta[half] += self.leak
        return delta
