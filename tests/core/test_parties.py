"""Party names are safe as file names, in a page and on a terminal."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import (
    COHORT,
    SERVER,
    client,
    is_shadow_device,
    parse_party,
    shadow_device,
)

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
        parse_party(name)


@pytest.mark.parametrize(
    "name", ["server", "client/3", "anon/17", "site-1", "hospital_a/v1.2", "a" * 64, "3"]
)
def test_takes_a_plain_name_as_it_is(name: str):
    assert parse_party(name) == name


@given(st.text())
def test_accepted_names_have_plain_letters_and_are_no_path_upwards(name: str):
    try:
        taken = parse_party(name)
    except ValueError:
        return
    allowed = set(string.ascii_letters + string.digits + "._-/")
    assert set(taken) <= allowed
    assert taken.count("/") <= 1
    for part in taken.split("/"):
        assert part[0].isalnum()


@given(st.integers(0, 10**9))
def test_client_names_are_valid(number: int):
    assert parse_party(client(number)) == f"client/{number}"


@given(st.integers(0, 10**9))
def test_shadow_devices_are_valid_and_differ_from_clients(number: int):
    assert parse_party(shadow_device(number)) == f"shadow/{number}"
    assert is_shadow_device(shadow_device(number))
    assert not is_shadow_device(client(number))


def test_similar_names_are_no_shadow_devices():
    assert not any(
        map(is_shadow_device, (SERVER, COHORT, parse_party("shadow"), parse_party("shadows/1")))
    )


def test_server_and_cohort_are_valid_names():
    assert parse_party(SERVER) == "server"
    assert parse_party(COHORT) == "cohort"
