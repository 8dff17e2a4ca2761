"""Known users and pseudonyms with planted updates, so that nothing is trained."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Message, Update
from overheard.core.parties import SERVER, Party, shadow_device
from overheard.core.seeds import Seed
from overheard.core.view import View

DIMS = 40
"""Numbers in an update; each of two attribute values affects one half."""

VALUES = ("left", "right")


def user(number: int) -> str:
    return f"user {number:02d}"


def pseudonym(number: int, of: int) -> Party:
    """Return the pseudonym of one user in one round."""
    return Party(f"anon/{number}-{of}")


def make_message(
    number: int,
    sender: Party,
    delta: Tensor | None = None,
    examples: int | None = None,
    metrics: Mapping[str, float] | None = None,
) -> Message:
    body = Update(
        {"out.weight": torch.zeros(1) if delta is None else delta}, examples, metrics or {}
    )
    return Message(number, sender, frozenset({SERVER}), body)


def make_view(*messages: Message) -> View:
    return View(frozenset({SERVER}), messages)


def make_prior(examples: int) -> Examples:
    return Examples(torch.zeros(examples, 2), torch.arange(examples) % 2)


@dataclass(frozen=True)
class PlantedUsers:
    """Users who take part, as many holdout users, and a shadow device for each.

    Args:
        user_effect: size of the user's effect on its updates.
        attribute_effect: size of the attribute's effect.
        users: number of users who take part.
        rounds: number of rounds, with replies of all users.
        value: attribute value of each user.

    """

    user_effect: float
    attribute_effect: float
    users: int = 16
    rounds: int = 3
    value: Callable[[int], str] = field(default=lambda number: VALUES[number // 2 % 2])

    def view(self) -> View:
        """Make a view: device n, and client n under a pseudonym, reply for user n."""
        messages = []
        for number in range(self.rounds):
            for user_number in range(2 * self.users):
                messages.append(
                    make_message(
                        number,
                        shadow_device(user_number),
                        self._delta("device", user_number, number),
                    )
                )
            for user_number in range(self.users):
                delta = self._delta("client", user_number, number)
                messages.append(make_message(number, pseudonym(number, user_number), delta))
        return make_view(*messages)

    def knowledge(self) -> Knowledge:
        numbers = range(2 * self.users)
        known_users = KnownUsers(
            {user(user_number): make_prior(4) for user_number in numbers[: self.users]},
            {user(user_number): make_prior(4) for user_number in numbers[self.users :]},
            {shadow_device(user_number): user(user_number) for user_number in numbers},
            attributes={
                "side": {user(user_number): self.value(user_number) for user_number in numbers}
            },
        )
        return Knowledge(2, facts=Facts(known_users))

    def targets(self) -> dict[Party, int]:
        """Return the user of each pseudonym."""
        return {
            pseudonym(number, user_number): user_number
            for number in range(self.rounds)
            for user_number in range(self.users)
        }

    def _delta(self, kind: str, user_number: int, number: int) -> Tensor:
        style_generator = Seed(5).child("style", user_number).generator()
        noise_generator = Seed(5).child(kind, user_number, number).generator()
        delta = self.user_effect * torch.randn(DIMS, generator=style_generator)
        delta += 0.3 * torch.randn(DIMS, generator=noise_generator)
        half = (
            slice(DIMS // 2) if self.value(user_number) == VALUES[0] else slice(DIMS // 2, None)
        )
        delta[half] += self.attribute_effect
        return delta
