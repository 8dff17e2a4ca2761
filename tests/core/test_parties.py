"""Party names are safe as file names, in a page and on a terminal."""

import string
import unicodedata

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
