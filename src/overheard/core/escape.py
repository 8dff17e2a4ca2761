"""Escapes unprintable characters of untrusted text."""

import unicodedata

WORD_JOINERS = frozenset("\u200c\u200d")
"""The zero-width non-joiner and joiner, which ordinary words of many scripts contain."""


def is_printable(text: str) -> bool:
    r"""Whether a text has no character that commands a terminal or turns nearby text around.

    Blanks of any width are printable, and so are the joiners of words.

    >>> is_printable("type\u00a02"), is_printable("a\u202eb"), is_printable("a\nb")
    (True, False, False)
    """
    return text.isprintable() or all(
        one.isprintable() or one in WORD_JOINERS or unicodedata.category(one) == "Zs"
        for one in text
    )


def escape_unprintable(text: str) -> str:
    r"""Escape each character that is not printable, line breaks included.

    >>> escape_unprintable("a\x1b[31m b")
    'a\\x1b[31m b'
    """
    return "".join(
        character
        if is_printable(character)
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
