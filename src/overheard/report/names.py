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
