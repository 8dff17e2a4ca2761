"""The parties of a federated run, and the observers that are no party of it."""

import re
from typing import NewType

Party = NewType("Party", str)

SERVER = Party("server")

COHORT = Party("cohort")
"""All clients of a round as one target: those behind an aggregate. For observers among the
clients it is all others, as they can subtract their own updates (see `View.updates`)."""

RELEASE = Party("release")
"""Whoever has the final model and nothing else of the run."""

NETWORK = Party("network")
"""Whoever carries the encrypted messages, such as a provider."""

EXTERNAL_NAMES = "'release' (the final model), 'late/ROUND' (joins late) or 'network'"
"""All names of external observers, for an error message."""

PARTY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?")
"""Only plain names, so that a name is safe as a file name, in a report and on a terminal."""


_LATE = re.compile(r"late/(0|[1-9][0-9]{0,8})")


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
    """Return whether this is a client that takes part: no server, shadow device or outsider."""
    is_other = party in (SERVER, COHORT) or is_shadow_device(party) or is_external(party)
    return not is_other


def late_joiner(number: int) -> Party:
    """Return the client that joins in this round, reads broadcasts and sends nothing."""
    return Party(f"late/{number}")


def joining_round(party: Party) -> int | None:
    """Return the first round of a late joiner; None for any other party.

    >>> joining_round(Party("late/3")), joining_round(Party("client/3"))
    (3, None)
    """
    match = _LATE.fullmatch(party)
    return None if match is None else int(match[1])


def is_external(party: Party) -> bool:
    """Return whether this observer is no party of the run."""
    return party in (RELEASE, NETWORK) or joining_round(party) is not None


def client(number: int) -> Party:
    """Return the client with this number, counted from 0."""
    return Party(f"client/{number}")


def party_sort_key(party: Party) -> tuple[str, int, str]:
    """Return a key that sorts client/2 before client/10."""
    kind, _, number = party.rpartition("/")
    return (kind, int(number), "") if number.isdecimal() else (kind, -1, number)
