"""Text in which nothing can control the terminal."""

from rich.text import Text

from overheard.core.escape import escape_unprintable


def escaped_text(text: str) -> Text:
    r"""Return the text with control characters and invisible ones escaped.

    Names come from files of other people. An escape sequence in a name could move the cursor,
    change the window title or hide other text.

    >>> escaped_text("a\x1b[31m b").plain
    'a\\x1b[31m b'
    """
    return Text("\n".join(map(escape_unprintable, text.split("\n"))))
