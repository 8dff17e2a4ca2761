"""Text in Markdown that is shown literally."""

import re

from overheard.findings.names import make_printable

_MARKUP = re.compile(r"[!-'*+/;<-@\[-`{-~]|:(?! |$)|(?<=www)\.", re.IGNORECASE)
"""Characters that Markdown, HTML or GitHub may interpret, names of sites included."""


def escape_markdown(text: str) -> str:
    r"""Escape text so that Markdown shows it literally, on one line.

    >>> print(escape_markdown("a|b <i>_x_"))
    a\|b \<i\>\_x\_
    """
    return _MARKUP.sub(r"\\\g<0>", make_printable(text))
