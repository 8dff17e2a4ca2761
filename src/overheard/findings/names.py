"""Safe and readable forms of names from data, plans and parties."""

import unicodedata
from collections.abc import Sequence

from overheard.core.parties import COHORT, SERVER, Party


def shown(text: str) -> str:
    r"""Return the text on one line, with unprintable characters as escape sequences.

    Control characters could command a terminal, and direction marks could reverse nearby text.
    Markup is not escaped here; the writer of each document format escapes it.

    >>> shown("cat\n\u202edog")
    'cat\\n\\u202edog'
    """
    # Most names are printable, and one check is 40 times as fast as one per character.
    return text if text.isprintable() else "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    # C: control, format, surrogate, private, unassigned; Zl, Zp: breaks of line, paragraph.
    category = unicodedata.category(character)
    if category.startswith("C") or category in ("Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def shortened(text: str, length: int) -> str:
    """Make the text printable, and cut it to at most `length` characters.

    >>> shortened("bronchial carcinoma", 10)
    'bronchial…'
    """
    plain = shown(text)
    return plain if len(plain) <= length else plain[: length - 1].rstrip() + "…"


def spoken(party: Party) -> str:
    """Return a party's name for use in a sentence.

    >>> spoken(Party("client/3"))
    'client 3'
    """
    if party == SERVER:
        return "the server"
    if party == COHORT:
        return "all clients together"
    return shown(party).replace("/", " ")


def together(observers: Sequence[Party]) -> str:
    """Return the name of observers who pool their views, for use in a sentence.

    >>> together((Party("server"), Party("client/3")))
    'the server and client 3 together'
    """
    if not observers:
        return "nobody"
    *others, last = map(spoken, observers)
    return f"{', '.join(others)} and {last} together" if others else last


def all_others(observers: Sequence[Party]) -> str:
    """Return the name of all clients but the observers, taken together.

    >>> all_others((Party("server"),)), all_others((Party("client/3"),))
    ('the cohort', 'the other clients')
    """
    return "the cohort" if set(observers) <= {SERVER} else "the other clients"


def called(target: Party, observers: Sequence[Party]) -> str:
    """Return the name of a target, as seen by these observers, for use in a sentence.

    >>> called(COHORT, (Party("client/3"),)), called(COHORT, (Party("server"),))
    ('the other clients together', 'all clients together')
    """
    if target == COHORT and not set(observers) <= {SERVER}:
        return f"{all_others(observers)} together"
    return spoken(target)


def possessive(name: str) -> str:
    """Return the possessive form of a name.

    >>> possessive("the cohort"), possessive("the other clients")
    ("the cohort's", "the other clients'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def told_apart(names: Sequence[str]) -> dict[str, str]:
    """Shorten attack names by dropping the parts that all of them share.

    Use it only where the full names are nearby, such as in a table under the chart.

    >>> told_apart(["ppa, about the cohort"])
    {'ppa, about the cohort': 'ppa'}
    >>> list(told_apart(["decaf, of all", "ppa, of all, without recipe"]).values())
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
