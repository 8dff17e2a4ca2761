"""Party names are safe as file names, in a page and on a terminal."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import (
    COHORT,
    SERVER,
    is_shadow_device,
    parse_party,
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


def test_similar_names_are_no_shadow_devices():
    assert not any(
        map(is_shadow_device, (SERVER, COHORT, parse_party("shadow"), parse_party("shadows/1")))
    )
