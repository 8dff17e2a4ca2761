"""Escaped text is shown literally by Markdown."""

import re

from hypothesis import given
from hypothesis import strategies as st

from overheard.gate.markdown import escape_markdown


@given(st.text())
def test_unescaping_gives_the_text_on_one_line(text: str) -> None:
    printable = "".join(one for one in text if one.isprintable())
    escaped = escape_markdown(printable)
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped) == printable
    assert "\n" not in escape_markdown(text)


def test_no_character_of_markup_stays_bare() -> None:
    for one in "<>|*_`[]#!&\\$~=":
        assert escape_markdown(one) == f"\\{one}"
    assert escape_markdown("www.example.org") == "www\\.example.org"
