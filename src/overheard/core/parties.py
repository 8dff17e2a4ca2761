"""The parties of a federated run, and the observers that are no party of it."""

import re
import unicodedata
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
"""Plain names of parties. The name after the kind may also have letters of other scripts."""

MAX_NAME_LENGTH = 64
"""Most characters of a kind, and of the name after it."""

_ZERO_WIDTH_NON_JOINER, _ZERO_WIDTH_JOINER = "\u200c", "\u200d"
_VIRAMA = 9
"""Canonical combining class of the sign after which Indic scripts use both joiners."""

_LATE = re.compile(r"late/(0|[1-9][0-9]{0,8})")


def parse_party(name: str) -> Party:
    """Parse an untrusted name, such as a recording's, as a party.

    A name is safe as part of a file name, in a report and on a terminal. The kind is plain, so
    that no letter of another script can imitate "server". A name after it has one form in
    Unicode (NFKC), so that no two parties look the same by their forms.

    >>> parse_party("client/3"), parse_party("client/hôpital")
    ('client/3', 'client/hôpital')

    Raises:
        ValueError: if the name has several path separators, markup or control characters, or
            is not normalised.

    """
    kind, _, name_of_kind = name.partition("/")
    if PARTY_NAME.fullmatch(name) or (
        PARTY_NAME.fullmatch(kind) and _is_name_of_letters(name_of_kind)
    ):
        return Party(name)
    raise ValueError(
        f"the party name {name!r} must have the form 'name' or 'kind/name', each of up to "
        f"{MAX_NAME_LENGTH} letters, digits, '.', '_' and '-', where letters of any script "
        "may stand after 'kind/', in the form NFKC of Unicode: rename the party"
    )


def _is_name_of_letters(name: str) -> bool:
    """Return whether a name has only letters and digits of any script, and `.`, `_`, `-`."""
    return (
        0 < len(name) <= MAX_NAME_LENGTH
        and unicodedata.category(name[0])[0] in "LN"
        and all(map(_is_name_character, " " + name, name, name[1:] + " "))
        and unicodedata.is_normalized("NFKC", name)
    )


def _is_name_character(before: str, character: str, after: str) -> bool:
    """Return whether a character of a name is allowed between two others.

    Zero-width joiners are part of words, and visible, only after a virama, and non-joiners also
    between letters of Arabic scripts (RFC 5892, appendix A.1 and A.2, simplified).
    """
    if character in (_ZERO_WIDTH_JOINER, _ZERO_WIDTH_NON_JOINER):
        is_arabic = (
            unicodedata.bidirectional(before) == unicodedata.bidirectional(after) == "AL"
        )
        is_non_joiner = character == _ZERO_WIDTH_NON_JOINER
        return unicodedata.combining(before) == _VIRAMA or (is_non_joiner and is_arabic)
    category = unicodedata.category(character)
    return character in "._-" or category[0] in "LM" or category == "Nd"


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
