"""Text that a terminal only shows."""

from hypothesis import given
from hypothesis import strategies as st

from overheard.cli.terminal import plain


def test_spells_out_what_cannot_be_seen():
    assert plain("a\x1b[31mb\u202ec\x00").plain == r"a\x1b[31mb\u202ec\x00"


def test_takes_markup_as_it_stands():
    assert plain("[bold]x[/bold]").plain == "[bold]x[/bold]"


@given(st.text())
def test_nothing_is_left_but_printable_characters_and_ends_of_line(text: str):
    shown = plain(text).plain
    assert all(character.isprintable() or character == "\n" for character in shown)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_what_can_be_seen_stays_as_it_is(text: str):
    assert plain(text).plain == text
