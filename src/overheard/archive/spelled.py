"""Text from outside, fit for an error message."""

from overheard.core.spelled import spelled_out

LONGEST = 1200
"""Characters that are kept of a text: whoever wrote it may have written megabytes."""


def spelled(text: str) -> str:
    r"""The same on one line: what does not print spelled out, the midst left out if long.

    The end stays, where a message says what to mend.

    >>> spelled("a\x1b[31m b")
    'a\\x1b[31m b'
    >>> len(spelled("a" * 10_000))
    1205
    """
    if len(text) > LONGEST:
        half = LONGEST // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return spelled_out(text)
