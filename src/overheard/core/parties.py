"""Who takes part in a federated run."""

import re
from typing import NewType

Party = NewType("Party", str)

SERVER = Party("server")

COHORT = Party("cohort")
"""All clients of a round taken as one: the subject of an aggregate. For an observer inside the
federation: all but the observers, whose own part it can take out (see `View.updates`)."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?")
"""Plain names only, so that a name is safe as a file name, in a report and on a terminal."""


def party(name: str) -> Party:
    """Take a name from outside, such as a recording's, as a party.

    >>> party("client/3")
    'client/3'

    Raises:
        ValueError: if the name has path separators beyond one, markup or control characters.

    """
    if not NAME.fullmatch(name):
        raise ValueError(
            f"the party name {name!r} is not of the form 'name' or 'kind/name' with letters, "
            "digits, '.', '_' and '-' (64 at most a part): rename the party"
        )
    return Party(name)


SHADOW = "shadow"
"""What the parties are called on which a server lets examples of its own take part."""


def shadow(number: int) -> Party:
    """Name the server's shadow device with this number, counted from 0."""
    return Party(f"{SHADOW}/{number}")


def is_shadow(who: Party) -> bool:
    """Whether this is a shadow device, hence nobody's."""
    return who.startswith(f"{SHADOW}/")


def client(number: int) -> Party:
    """Name the client with this number, counted from 0."""
    return Party(f"client/{number}")


def by_number(who: Party) -> tuple[str, int, str]:
    """Return a key that sorts client/2 before client/10."""
    kind, _, number = who.rpartition("/")
    return (kind, int(number), "") if number.isdecimal() else (kind, -1, number)
