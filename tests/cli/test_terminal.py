"""Text that a terminal only shows."""

from hypothesis import given
from hypothesis import strategies as st

from overheard.cli.terminal import escaped_text


def test_escapes_invisible_characters():
    assert escaped_text("a\x1b[31mb\u202ec\x00").plain == r"a\x1b[31mb\u202ec\x00"


def test_keeps_markup_as_text():
    assert escaped_text("[bold]x[/bold]").plain == "[bold]x[/bold]"


@given(st.text())
def test_output_has_only_printable_characters_and_newlines(text: str):
    shown = escaped_text(text).plain
    assert all(character.isprintable() or character == "\n" for character in shown)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_keeps_printable_text(text: str):
    assert escaped_text(text).plain == text
