"""Escapes unprintable characters of untrusted text."""


def escape_unprintable(text: str) -> str:
    r"""Escape each character that is not printable, line breaks included.

    >>> escape_unprintable("a\x1b[31m b")
    'a\\x1b[31m b'
    """
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
