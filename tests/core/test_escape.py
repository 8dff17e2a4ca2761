import pytest

from overheard.core.escape import escape_unprintable, is_printable


@pytest.mark.parametrize("word", ["نمی\u200cدانم", "ක්\u200dෂය", "type\u00a02"])
def test_joiners_and_blanks_are_parts_of_words(word: str) -> None:
    assert is_printable(word)
    assert escape_unprintable(word) == word


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\n", "\u2028", "\ufeff"])
def test_signs_that_could_change_what_is_near_are_escaped(sign: str) -> None:
    assert not is_printable(f"a{sign}")
    assert sign not in escape_unprintable(f"a{sign}")
