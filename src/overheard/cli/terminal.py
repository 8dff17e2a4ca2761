"""Text that cannot make a terminal do anything but show it."""

from rich.text import Text


def plain(text: str) -> Text:
    r"""The same text, with control characters and invisible ones spelled out.

    Names come from files that others made; an escape sequence in them could move the cursor,
    retitle the window or hide what stands beside it.

    >>> plain("a\x1b[31m b").plain
    'a\\x1b[31m b'
    """
    return Text(
        "".join(
            character
            if character.isprintable() or character == "\n"
            else character.encode("unicode_escape").decode()
            for character in text
        )
    )
