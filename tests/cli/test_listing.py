"""Lists, their details and their width."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.cli.list_entries import ListEntry
from overheard.cli.terminal import escaped_text
from overheard.core.plugin_registry import PluginRegistry
from overheard.plans.registries import REGISTRIES
from tests.cli.conftest import Command, assert_user_error


@pytest.mark.parametrize("kind", REGISTRIES, ids=lambda kind: kind.name)
def test_lists_every_part_with_its_settings_and_source(
    overheard: Command, kind: PluginRegistry[Any]
):
    said = overheard("list", kind.name)
    assert said.code == 0
    assert said.err == ""
    lines = said.out.splitlines()
    for name, part in kind.plugins().items():
        assert name in lines
        assert part.source.split()[0] in said.out


def test_plugins_of_other_packages_are_listed_with_their_package(
    overheard: Command, monkeypatch: pytest.MonkeyPatch
):
    entry = ListEntry("theirs", "An attack of theirs.", ("n: int = 1",), "a paper", "their 1.0")
    monkeypatch.setattr("overheard.cli.listing.plugin_entries", lambda kind: (entry,))
    lines = overheard("list", "attacks").out.splitlines()
    assert [line.rstrip() for line in lines[:5]] == [
        "theirs",
        "    An attack of theirs.",
        "    n: int = 1",
        "    a paper",
        "    from their 1.0",
    ]


def test_lists_as_json(overheard: Command):
    said = json.loads(overheard("list", "splits", "--json").out)
    (dirichlet,) = [one for one in said if one["name"] == "dirichlet"]
    assert "alpha: float = 0.5" in dirichlet["details"]
    assert json.loads(overheard("list", "splits", "dirichlet", "--json").out) == [dirichlet]
    terms = json.loads(overheard("list", "terms", "--json").out)
    assert all(term["name"] and term["meaning"] for term in terms)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_prints_facts_and_every_setting_with_range_and_default(overheard: Command):
    said = overheard("list", "attacks", "decaf")
    assert said.code == 0
    assert "Question: `label_shares`" in said.out
    assert "Adapts to defenses: to known defenses" in flat(said.out)
    assert 'solver = "nnls"' in said.out
    assert "steps of gradient descent. (whole number; at least 1)" in flat(said.out)


def test_prints_an_example_where_there_is_no_default(overheard: Command):
    said = overheard("list", "datasets", "own")
    assert 'Example: reference = "cases.parquet"' in flat(said.out)


def test_refuses_an_unknown_name_and_kinds_without_details(overheard: Command):
    assert_user_error(overheard("list", "attacks", "decfa"), "decfa", "overheard list attacks")
    assert_user_error(overheard("list", "papers", "decaf"), "no details")


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
