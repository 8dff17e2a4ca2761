"""Which user each client is."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.core.errors import NeedsError
from overheard.core.parties import Party
from overheard.core.true_facts.stated import refuse_others, refuse_unprintable
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class UsersOfClients(TrueFact):
    """The user of each client that stands for one user."""

    users: Mapping[Party, str]

    key = "users"
    form = Mapping[str, str]
    how_to_get = (
        "the ground truth has no users of clients: assign users to clients (data.people in a "
        "plan, `users` in the truth of a recording), or ask another question"
    )

    def user_of(self, target: Party) -> str:
        """Return the user that a target stands for.

        Raises:
            NeedsError: if it is unknown.

        """
        if target not in self.users:
            raise NeedsError(
                f"the ground truth has no user for {target}: assign users to clients "
                "(data.people in a plan, `users` in the truth of a recording), or ask another "
                "question"
            )
        return self.users[target]

    @classmethod
    def from_json(cls, stated: Mapping[str, str]) -> "UsersOfClients":
        """Return the users that truth.json states."""
        refuse_others(cls.key, stated)
        refuse_unprintable("user", stated.values())
        return cls({Party(client): user for client, user in stated.items()})

    def to_json(self) -> Mapping[Party, str]:
        """Return the user by client."""
        return self.users

    def clients(self) -> Collection[Party]:
        """Return the clients that it names."""
        return self.users.keys()

    def renamed(self, names: Renaming) -> "UsersOfClients":
        """Return the users of the clients by their new names."""
        return replace(self, users=names.rename_parties(self.users))
