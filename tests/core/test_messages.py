"""Messages, parties and seeds."""

import string
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.escape import escape_unprintable, is_printable
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Update,
    apply_update,
    count_bytes,
    is_finite,
)
from overheard.core.parties import (
    COHORT,
    SERVER,
    is_shadow_device,
    parse_party,
)
from overheard.core.seeds import Seed

MIXED_WEIGHTS = {"w": torch.zeros(3, 2), "b": torch.zeros(2, dtype=torch.float16)}
"""6 x 4 + 2 x 2 bytes"""


def test_applying_an_update_changes_neither_start_nor_delta():
    start, delta = {"a": torch.tensor([1.0])}, {"a": torch.tensor([2.0])}
    apply_update(start, delta)
    assert start["a"].tolist() == [1.0]
    assert delta["a"].tolist() == [2.0]


def test_counts_each_number_at_its_width() -> None:
    assert count_bytes(Broadcast(MIXED_WEIGHTS)) == 28
    assert (
        count_bytes(Update(MIXED_WEIGHTS))
        == count_bytes(Aggregate(MIXED_WEIGHTS, frozenset()))
        == 28
    )
    inputs, labels = torch.zeros(2, 3), torch.zeros(2, 2)
    assert count_bytes(DistilledSet(inputs, labels, torch.zeros(2), torch.zeros(2))) == 56


HOSTILE = (
    "",
    " ",
    "/",
    "client/",
    "/client",
    "client//3",
    "client/3/4",
    "client\\3",
    "..",
    "../server",
    "client/..",
    "client/.",
    ".hidden",
    "-rf",
    "_private",
    "client 3",
    "client/3\n",
    "\nclient",
    "client\x00",
    "client\x1b[31m",
    "client\t3",
    "<b>server</b>",
    "client&amp;",
    "client'",
    'client"',
    "[bold]client",
    "client{{7*7}}",
    "ѕerver",  # a Cyrillic letter that looks like an s
    "sеrver",  # a Cyrillic letter that looks like an e
    "server\u200b",
    "\u202eserver",
    "client/３",  # a full-width digit
    "client/ｋ",  # a full-width letter
    "client/ho\u0302pital",  # a decomposed form of ô
    "client/a\u200cb",  # a joiner that nobody sees
    "client/\u200ca",
    "client/نمی\u200d",
    "client/\u0302a",
    "client/ô b",
    "client/ô\u202eb",
    "client/\U0001f600",
    "hôpital/1",
    "клиент",
    "clïent",
    "C:server",
    "~root",
    "$HOME",
    "a" * 65,
    "a/" + "b" * 65,
    "a" * 100_000,
)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:30])
def test_refuses_a_hostile_name_and_says_what_to_do(name: str):
    with pytest.raises(ValueError, match="rename the party"):
        parse_party(name)


@given(st.text())
def test_accepted_names_have_only_letters_and_digits_and_are_no_path_upwards(name: str):
    try:
        taken = parse_party(name)
    except ValueError:
        return
    kind = set(taken.partition("/")[0])
    assert kind <= set(string.ascii_letters + string.digits + "._-")
    for character in set(taken) - set("._-/\u200c\u200d"):
        assert unicodedata.category(character)[0] in "LMN"
    assert taken == unicodedata.normalize("NFKC", taken)
    assert taken.count("/") <= 1
    for part in taken.split("/"):
        assert part[0].isalnum()


@pytest.mark.parametrize(
    "name", ["hôpital-nord", "клиника.3", "病院", "अस्पताल", "نمی\u200cدانم", "ක්\u200dෂය", "٣"]
)
def test_a_name_after_the_kind_may_have_letters_of_any_script(name: str):
    assert parse_party(f"client/{name}") == f"client/{name}"


def test_similar_names_are_no_shadow_devices():
    assert not any(
        map(is_shadow_device, (SERVER, COHORT, parse_party("shadow"), parse_party("shadows/1")))
    )


VALUES = st.integers(0, 2**63 - 1)


PATHS = st.lists(st.text() | st.integers(), min_size=1).map(tuple)


@given(VALUES, PATHS, PATHS)
def test_children_on_different_paths_differ(
    value: int, one: tuple[str | int, ...], other: tuple[str | int, ...]
):
    assert (Seed(value).child(*one) == Seed(value).child(*other)) == (one == other)


def test_a_number_and_its_text_are_different_paths():
    assert Seed(0).child("client", 3) != Seed(0).child("client", "3")
    assert Seed(0).child("a", "b") != Seed(0).child("ab")
    assert Seed(0).child("a", "b") != Seed(0).child("a").child("b")


def test_the_draws_of_a_thousand_children_are_uncorrelated_with_their_number():
    # Spearman's is Pearson's here, as ranks of uniform draws are linear in them; for a thousand
    # independent draws its standard deviation is 1 / sqrt(1000) = 0.032, and 4 of these 0.13.
    draws = torch.stack(
        [
            torch.rand((), generator=Seed(0).child("client", number).generator())
            for number in range(1000)
        ]
    )
    correlation = torch.corrcoef(torch.stack([draws, torch.arange(1000.0)]))[0, 1]
    assert abs(float(correlation)) < 0.13
    assert abs(float(draws.mean()) - 0.5) < 4 * (1 / 12 / 1000) ** 0.5


def test_draws_do_not_affect_other_draws():
    before = Seed(7).child("a").numpy().random(3)
    Seed(7).child("b").numpy().random(1000)
    torch.rand(5)
    assert (Seed(7).child("a").numpy().random(3) == before).all()


@pytest.mark.parametrize("value", [-1, 2**63, 2**64])
def test_refuses_what_no_generator_takes(value: int):
    with pytest.raises(ValueError, match="between 0 and"):
        Seed(value)


@pytest.mark.parametrize("word", ["نمی\u200cدانم", "ක්\u200dෂය", "type\u00a02"])
def test_joiners_and_blanks_are_parts_of_words(word: str) -> None:
    assert is_printable(word)
    assert escape_unprintable(word) == word


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\n", "\u2028", "\ufeff"])
def test_signs_that_could_change_what_is_near_are_escaped(sign: str) -> None:
    assert not is_printable(f"a{sign}")
    assert sign not in escape_unprintable(f"a{sign}")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], True),
        ([1.0, -2.0], True),
        # The sum is infinite, and each number is finite.
        ([3e38, 3e38], True),
        ([1.0, float("nan")], False),
        ([1.0, float("inf")], False),
        # The sum is NaN.
        ([float("inf"), -float("inf")], False),
    ],
)
def test_finite_numbers_are_told_from_others(numbers: list[float], expected: bool) -> None:
    assert is_finite(torch.tensor(numbers)) is expected


def test_whole_numbers_are_finite() -> None:
    assert is_finite(torch.tensor([2**62, 2**62, 2**62]))
    assert is_finite(torch.tensor([True, False]))
