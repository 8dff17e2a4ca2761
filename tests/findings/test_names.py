"""Names from outside are printable and readable."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import COHORT, SERVER, client
from overheard.findings.names import shortened, shown, spoken, together, told_apart


@given(st.text())
def test_removes_control_characters_direction_marks_and_breaks(text: str) -> None:
    for character in shown(text):
        assert unicodedata.category(character)[0] != "C"
        assert character not in "\u2028\u2029"


@given(st.text(alphabet="abc <>&'\"=$é八שב", max_size=40))
def test_keeps_printable_characters(text: str) -> None:
    assert shown(text) == text


@given(st.text(), st.integers(2, 30))
def test_a_shortened_name_is_at_most_this_long(text: str, length: int) -> None:
    assert len(shortened(text, length)) <= length


def test_names_parties_and_pooled_observers() -> None:
    assert together((SERVER,)) == "the server"
    assert together((SERVER, client(1), client(2))) == (
        "the server, client 1 and client 2 together"
    )
    assert spoken(COHORT) == "all clients together"


def test_drops_what_all_attack_names_share() -> None:
    names = [
        "whispers, with 300 virtual clients",
        "whispers, auxiliary examples distorted by 0.5, with 300 virtual clients",
        "decaf(steps=2, sizes=(1, 2)), with 300 virtual clients, expecting iid",
    ]
    assert list(told_apart(names).values()) == [
        "whispers",
        "whispers (auxiliary examples distorted by 0.5)",
        "decaf(steps=2, sizes=(1, 2)) (expecting iid)",
    ]
    assert told_apart(["decaf, about the cohort"]) == {"decaf, about the cohort": "decaf"}
    assert told_apart([]) == {}
