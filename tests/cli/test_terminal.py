"""Text that a terminal only shows."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from overheard.cli.terminal import escaped_text


@given(st.text())
def test_output_has_only_printable_characters_and_newlines(text: str):
    shown = escaped_text(text).plain
    categories = {unicodedata.category(one) for one in shown if not one.isprintable()}
    joiners = {one for one in shown if unicodedata.category(one) == "Cf"}
    # Control: only line breaks. Format: only the joiners of words. No separators of lines.
    assert categories <= {"Cc", "Cf", "Zs"}
    assert joiners <= {"\u200c", "\u200d"}
    assert {one for one in shown if unicodedata.category(one) == "Cc"} <= {"\n"}


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_keeps_printable_text(text: str):
    assert escaped_text(text).plain == text
