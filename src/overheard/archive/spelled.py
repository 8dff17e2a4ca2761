"""Makes untrusted text safe for an error message."""

from overheard.core.spelled import spelled_out

LONGEST = 1200
"""Longest text in characters that is shown in full."""


def spelled(text: str) -> str:
    r"""Escape unprintable characters, and cut the middle out of a long text.

    The end is kept, as it often says how to fix an error.

    >>> spelled("a\x1b[31m b")
    'a\\x1b[31m b'
    >>> len(spelled("a" * 10_000))
    1205
    """
    if len(text) > LONGEST:
        half = LONGEST // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return spelled_out(text)
