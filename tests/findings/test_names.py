"""Names from outside are printable and readable."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import COHORT, SERVER, client
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_party,
    shorten,
    shorten_attack_names,
)


@given(st.text())
def test_removes_control_characters_direction_marks_and_breaks(text: str) -> None:
    for character in make_printable(text):
        assert unicodedata.category(character)[0] != "C"
        assert character not in "\u2028\u2029"


@given(st.text(alphabet="abc <>&'\"=$é八שב", max_size=40))
def test_keeps_printable_characters(text: str) -> None:
    assert make_printable(text) == text


@given(st.text(), st.integers(2, 30))
def test_a_shortened_name_is_at_most_this_long(text: str, length: int) -> None:
    assert len(shorten(text, length)) <= length


def test_names_parties_and_pooled_observers() -> None:
    assert name_observers((SERVER,)) == "the server"
    assert name_observers((SERVER, client(1), client(2))) == (
        "the server, client 1 and client 2 together"
    )
    assert name_party(COHORT) == "all clients together"


def test_drops_what_all_attack_names_share() -> None:
    names = [
        "whispers, with 300 virtual clients",
        "whispers, auxiliary examples distorted by 0.5, with 300 virtual clients",
        "decaf(steps=2, sizes=(1, 2)), with 300 virtual clients, expecting iid",
    ]
    assert list(shorten_attack_names(names).values()) == [
        "whispers",
        "whispers (auxiliary examples distorted by 0.5)",
        "decaf(steps=2, sizes=(1, 2)) (expecting iid)",
    ]
    assert shorten_attack_names(["decaf, about the cohort"]) == {
        "decaf, about the cohort": "decaf"
    }
    assert shorten_attack_names([]) == {}


def test_joiners_are_shown_as_parts_of_words() -> None:
    assert make_printable("ක්\u200dෂය") == "ක්\u200dෂය"
    assert make_printable("a\u202eb") == r"a\u202eb"
