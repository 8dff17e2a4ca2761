"""What can be named in a plan is listed, every bit of it."""

import json
from typing import Any

import pytest

from overheard.cli.list_entries import ListEntry
from overheard.core.plugin_registry import PluginRegistry
from overheard.plans.registries import REGISTRIES
from tests.cli.conftest import Command


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
