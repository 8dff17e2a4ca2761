"""Text that a terminal only shows."""

from hypothesis import given
from hypothesis import strategies as st

from overheard.cli.terminal import escaped_text


@given(st.text())
def test_output_has_only_printable_characters_and_newlines(text: str):
    shown = escaped_text(text).plain
    assert all(character.isprintable() or character == "\n" for character in shown)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_keeps_printable_text(text: str):
    assert escaped_text(text).plain == text
