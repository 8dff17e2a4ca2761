"""Party names are safe as file names, in a page and on a terminal."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import COHORT, SERVER, client, is_shadow, party, shadow

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
    "client/٣",  # an Arabic digit
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
        party(name)


@pytest.mark.parametrize(
    "name", ["server", "client/3", "anon/17", "site-1", "hospital_a/v1.2", "a" * 64, "3"]
)
def test_takes_a_plain_name_as_it_is(name: str):
    assert party(name) == name


@given(st.text())
def test_whatever_is_taken_is_of_plain_letters_and_no_path_upwards(name: str):
    try:
        taken = party(name)
    except ValueError:
        return
    allowed = set(string.ascii_letters + string.digits + "._-/")
    assert set(taken) <= allowed
    assert taken.count("/") <= 1
    for part in taken.split("/"):
        assert part[0].isalnum()


@given(st.integers(0, 10**9))
def test_the_name_of_every_client_is_a_partys(number: int):
    assert party(client(number)) == f"client/{number}"


@given(st.integers(0, 10**9))
def test_a_shadow_device_is_a_party_that_is_told_from_all_others(number: int):
    assert party(shadow(number)) == f"shadow/{number}"
    assert is_shadow(shadow(number))
    assert not is_shadow(client(number))


def test_who_is_only_called_alike_is_no_shadow_device():
    assert not any(map(is_shadow, (SERVER, COHORT, party("shadow"), party("shadows/1"))))


def test_the_names_of_the_house_are_parties():
    assert party(SERVER) == "server"
    assert party(COHORT) == "cohort"
