"""Text that cannot make a terminal do anything but show it."""

from rich.text import Text

from overheard.core.spelled import spelled_out


def plain(text: str) -> Text:
    r"""The same text, with control characters and invisible ones spelled out.

    Names come from files that others made; an escape sequence in them could move the cursor,
    retitle the window or hide what stands beside it.

    >>> plain("a\x1b[31m b").plain
    'a\\x1b[31m b'
    """
    return Text("\n".join(map(spelled_out, text.split("\n"))))
