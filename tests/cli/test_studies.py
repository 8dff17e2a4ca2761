"""The studies of papers are found by their entry point, or the message says how to get them."""

from types import SimpleNamespace

import pytest

from overheard.cli import studies
from overheard.cli.list_entries import ListEntry
from tests.cli.conftest import Command, assert_user_error

ENTRY = ListEntry("paper", "A title", ("paper/table1  A table",), "somebody 2020")


def install(monkeypatch: pytest.MonkeyPatch, module: SimpleNamespace | None) -> None:
    monkeypatch.setattr(studies, "load_studies", lambda: module)


@pytest.mark.parametrize("arguments", [("reproduce", "decaf/table3"), ("list", "papers")])
def test_without_the_studies_a_command_says_how_to_install_them(
    overheard: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
):
    install(monkeypatch, None)
    assert_user_error(overheard(*arguments), "not installed", "pip install ./studies")


def test_installed_studies_are_listed_and_told_what_to_run(
    overheard: Command, monkeypatch: pytest.MonkeyPatch
):
    asked = list[object]()
    module = SimpleNamespace(
        list_papers=lambda: (ENTRY,),
        reproduce_one=lambda *given: asked.extend(given),
        reproduce_all=asked.append,
        write_report_of_all=asked.append,
    )
    install(monkeypatch, module)
    assert "paper/table1  A table" in overheard("list", "papers").out
    command = ("reproduce", "paper/table1", "--runs", "2", "--arm", "epsilon 5", "--quick")
    assert overheard(*command).code == 0
    assert asked[:7] == ["paper/table1", None, True, (), ["epsilon 5"], (0, 1), False]
