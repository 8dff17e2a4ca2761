"""Makes untrusted text safe for an error message."""

from overheard.core.escape import escape_unprintable

MAX_LENGTH = 1200
"""Longest text in characters that is shown in full."""


def printable_excerpt(text: str) -> str:
    r"""Escape unprintable characters, and cut the middle out of a long text.

    The end is kept, as it often says how to fix an error.

    >>> printable_excerpt("a\x1b[31m b")
    'a\\x1b[31m b'
    >>> len(printable_excerpt("a" * 10_000))
    1205
    """
    if len(text) > MAX_LENGTH:
        half = MAX_LENGTH // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return escape_unprintable(text)
