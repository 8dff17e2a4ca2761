"""Safe and readable forms of names from data, plans and parties."""

import unicodedata
from collections.abc import Sequence

from overheard.core.escape import WORD_JOINERS
from overheard.core.parties import (
    COHORT,
    NETWORK,
    RELEASE,
    SERVER,
    Party,
    is_client,
    joining_round,
)

COHORTS_KNOWN = "knowing who took part"
"""Part of the name of an attack whose observers are told who took part in each round."""

MAX_NAMED = 4
"""Most targets of a claim that a sentence names."""


def make_printable(text: str) -> str:
    r"""Return the text on one line, with unprintable characters as escape sequences.

    Control characters could command a terminal, and direction marks could reverse nearby text.
    Markup is not escaped here; the writer of each document format escapes it.

    >>> make_printable("cat\n\u202edog")
    'cat\\n\\u202edog'
    """
    # Most names are printable, and one check is 40 times as fast as one per character.
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    # C: control, format, surrogate, private, unassigned; Zl, Zp: breaks of line, paragraph.
    if character in WORD_JOINERS:
        return character
    category = unicodedata.category(character)
    if category.startswith("C") or category in ("Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def shorten(text: str, length: int) -> str:
    """Make the text printable, and cut it to at most `length` characters.

    >>> shorten("bronchial carcinoma", 10)
    'bronchial…'
    """
    plain = make_printable(text)
    return plain if len(plain) <= length else plain[: length - 1].rstrip() + "…"


def name_party(party: Party) -> str:
    """Return a party's name for use in a sentence.

    >>> name_party(Party("client/3"))
    'client 3'
    """
    if party == SERVER:
        return "the server"
    if party == COHORT:
        return "all clients together"
    if party == RELEASE:
        return "a reader of the final model"
    if party == NETWORK:
        return "the network"
    if (joined := joining_round(party)) is not None:
        return f"a client that joins in round {joined}"
    return make_printable(party).replace("/", " ")


def name_observers(observers: Sequence[Party]) -> str:
    """Return the name of observers who pool their views, for use in a sentence.

    >>> name_observers((Party("server"), Party("client/3")))
    'the server and client 3 together'
    """
    return _name_together(observers) if observers else "nobody"


def _name_together(parties: Sequence[Party]) -> str:
    *others, last = map(name_party, parties)
    return f"{', '.join(others)} and {last} together" if others else last


def name_other_clients(observers: Sequence[Party]) -> str:
    """Return the name of all clients but the observers, taken together.

    >>> name_other_clients((Party("server"),)), name_other_clients((Party("client/3"),))
    ('the cohort', 'the other clients')
    """
    return "the other clients" if any(map(is_client, observers)) else "the cohort"


def name_targets(targets: Sequence[Party], observers: Sequence[Party]) -> str:
    """Return the name of a claim's targets, as seen by these observers, for use in a sentence.

    Of more than `MAX_NAMED` targets it gives the number.

    >>> name_targets((COHORT,), (Party("client/3"),)), name_targets((COHORT,), (SERVER,))
    ('the other clients together', 'all clients together')
    >>> name_targets((Party("client/0"), Party("client/2")), (SERVER,))
    'client 0 and client 2 together'
    """
    if tuple(targets) == (COHORT,) and any(map(is_client, observers)):
        return f"{name_other_clients(observers)} together"
    if len(targets) > MAX_NAMED:
        return f"{len(targets)} clients together"
    return _name_together(targets)


def possessive(name: str) -> str:
    """Return the possessive form of a name.

    >>> possessive("the cohort"), possessive("the other clients")
    ("the cohort's", "the other clients'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def shorten_attack_names(names: Sequence[str]) -> dict[str, str]:
    """Shorten attack names by dropping the parts that all of them share.

    Use it only where the full names are nearby, such as in a table under the chart.

    >>> shorten_attack_names(["ppa, about the cohort"])
    {'ppa, about the cohort': 'ppa'}
    >>> list(shorten_attack_names(["decaf, of all", "ppa, of all, without recipe"]).values())
    ['decaf', 'ppa (without recipe)']
    """
    parts = {name: _parts(name) for name in names}
    shared = (
        set.intersection(*(set(name_parts[1:]) for name_parts in parts.values()))
        if parts
        else set()
    )
    short_names = {}
    for name, (first, *others) in parts.items():
        distinct = [part for part in others if part not in shared]
        short_names[name] = f"{first} ({', '.join(distinct)})" if distinct else first
    return short_names


def _parts(name: str) -> list[str]:
    """Split a name at its commas, except for commas inside brackets."""
    parts, depth = list[str](), 0
    for piece in name.split(", "):
        if depth > 0:
            parts[-1] += f", {piece}"
        else:
            parts.append(piece)
        depth += piece.count("(") - piece.count(")")
    return parts
