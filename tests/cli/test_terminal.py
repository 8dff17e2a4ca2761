"""Text that a terminal only shows."""

from hypothesis import given
from hypothesis import strategies as st

from overheard.cli.terminal import plain


def test_escapes_invisible_characters():
    assert plain("a\x1b[31mb\u202ec\x00").plain == r"a\x1b[31mb\u202ec\x00"


def test_keeps_markup_as_text():
    assert plain("[bold]x[/bold]").plain == "[bold]x[/bold]"


@given(st.text())
def test_output_has_only_printable_characters_and_newlines(text: str):
    shown = plain(text).plain
    assert all(character.isprintable() or character == "\n" for character in shown)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_keeps_printable_text(text: str):
    assert plain(text).plain == text
