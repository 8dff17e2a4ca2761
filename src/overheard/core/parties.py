"""The parties of a federated run: the server, clients and shadow devices."""

import re
from typing import NewType

Party = NewType("Party", str)

SERVER = Party("server")

COHORT = Party("cohort")
"""All clients of a round as one target: those behind an aggregate. For observers among the
clients it is all others, as they can subtract their own updates (see `View.updates`)."""

PARTY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?")
"""Only plain names, so that a name is safe as a file name, in a report and on a terminal."""


def parse_party(name: str) -> Party:
    """Parse an untrusted name, such as a recording's, as a party.

    >>> parse_party("client/3")
    'client/3'

    Raises:
        ValueError: if the name has several path separators, markup or control characters.

    """
    if not PARTY_NAME.fullmatch(name):
        raise ValueError(
            f"the party name {name!r} must have the form 'name' or 'kind/name', each of up to "
            "64 letters, digits, '.', '_' and '-': rename the party"
        )
    return Party(name)


SHADOW_PREFIX = "shadow"
"""Name prefix of shadow devices: parties that train on examples of the server's choice."""


def shadow_device(number: int) -> Party:
    """Return the server's shadow device with this number, counted from 0."""
    return Party(f"{SHADOW_PREFIX}/{number}")


def is_shadow_device(party: Party) -> bool:
    """Return whether this party is a shadow device, which belongs to no user."""
    return party.startswith(f"{SHADOW_PREFIX}/")


def is_client(party: Party) -> bool:
    """Return whether this party of a run is a client: not the server, no shadow device."""
    return party not in (SERVER, COHORT) and not is_shadow_device(party)


def client(number: int) -> Party:
    """Return the client with this number, counted from 0."""
    return Party(f"client/{number}")


def party_sort_key(party: Party) -> tuple[str, int, str]:
    """Return a key that sorts client/2 before client/10."""
    kind, _, number = party.rpartition("/")
    return (kind, int(number), "") if number.isdecimal() else (kind, -1, number)
