"""Makes names that come from data, plans and parties safe and plain to read."""

import unicodedata
from collections.abc import Sequence

from overheard.core.parties import COHORT, SERVER, Party


def shown(text: str) -> str:
    r"""The text on one line, with each character that has no picture of its own spelled out.

    Control characters could command a terminal, and marks of direction could turn the text
    beside them around; spelled out they can do neither. Markup is left as it is: whoever
    writes the text into a document escapes it for that document.

    >>> shown("cat\n\u202edog")
    'cat\\n\\u202edog'
    """
    # Most names are plain: asking once is 40 times as fast as asking character by character.
    return text if text.isprintable() else "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    # C: control, format, surrogate, private, unassigned; Zl, Zp: breaks of line, paragraph.
    hidden = unicodedata.category(character)
    if hidden.startswith("C") or hidden in ("Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def shortened(text: str, length: int) -> str:
    """The text as shown, cut to at most `length` characters.

    >>> shortened("bronchial carcinoma", 10)
    'bronchial…'
    """
    plain = shown(text)
    return plain if len(plain) <= length else plain[: length - 1].rstrip() + "…"


def spoken(party: Party) -> str:
    """How a sentence names the party.

    >>> spoken(Party("client/3"))
    'client 3'
    """
    if party == SERVER:
        return "the server"
    if party == COHORT:
        return "all clients together"
    return shown(party).replace("/", " ")


def together(observers: Sequence[Party]) -> str:
    """How a sentence names observers who pool what they read.

    >>> together((Party("server"), Party("client/3")))
    'the server and client 3 together'
    """
    if not observers:
        return "nobody"
    *others, last = map(spoken, observers)
    return f"{', '.join(others)} and {last} together" if others else last


def all_others(observers: Sequence[Party]) -> str:
    """What all clients but the observers, taken as one, are called.

    >>> all_others((Party("server"),)), all_others((Party("client/3"),))
    ('the cohort', 'the other clients')
    """
    return "the cohort" if set(observers) <= {SERVER} else "the other clients"


def called(target: Party, observers: Sequence[Party]) -> str:
    """How a sentence names whom these observers ask about.

    >>> called(COHORT, (Party("client/3"),)), called(COHORT, (Party("server"),))
    ('the other clients together', 'all clients together')
    """
    if target == COHORT and not set(observers) <= {SERVER}:
        return f"{all_others(observers)} together"
    return spoken(target)


def possessive(name: str) -> str:
    """The name as the owner of something.

    >>> possessive("the cohort"), possessive("the other clients")
    ("the cohort's", "the other clients'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def told_apart(names: Sequence[str]) -> dict[str, str]:
    """A short form of each of these names of attacks: what all of them share is left out.

    Where a name is to be found in full stands beside it: in the table under a chart, or in the
    sentence on the attack.

    >>> told_apart(["ppa, about the cohort"])
    {'ppa, about the cohort': 'ppa'}
    >>> list(told_apart(["decaf, of all", "ppa, of all, without recipe"]).values())
    ['decaf', 'ppa (without recipe)']
    """
    parts = {name: _parts(name) for name in names}
    shared = set.intersection(*(set(each[1:]) for each in parts.values())) if parts else set()
    short = {}
    for name, (first, *others) in parts.items():
        apart = [part for part in others if part not in shared]
        short[name] = f"{first} ({', '.join(apart)})" if apart else first
    return short


def _parts(name: str) -> list[str]:
    """The name split at its commas, but for those inside of brackets."""
    parts, depth = list[str](), 0
    for piece in name.split(", "):
        if depth > 0:
            parts[-1] += f", {piece}"
        else:
            parts.append(piece)
        depth += piece.count("(") - piece.count(")")
    return parts
