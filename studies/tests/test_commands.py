"""`overheard reproduce`: one experiment, all, or only their page."""

from pathlib import Path

import pytest
from rich.console import Console

from overheard.core.errors import DataError
from overheard_studies import commands
from overheard_studies.commands import print_reproduction
from overheard_studies.reproduce import find_papers
from overheard_studies.study import Study
from overheard_studies.values import ReproducedValue, StoredValues, write_values
from tests.cli.conftest import Command, assert_user_error


@pytest.mark.parametrize(
    "arguments",
    [(), ("decaf/table3", "--all"), ("decaf/table3", "--report"), ("--all", "--report")],
)
def test_one_experiment_or_all_or_the_page(overheard: Command, arguments: tuple[str, ...]):
    said = overheard("reproduce", *arguments)
    assert said.code == 2
    assert "--all" in said.err


def test_refuses_an_unknown_experiment(overheard: Command):
    assert_user_error(
        overheard("reproduce", "nobody/table1"), "unknown paper 'nobody'; known papers:"
    )
    assert_user_error(overheard("reproduce", "decaf/table99"), "decaf/NAME with one of: table3")


def test_lists_every_experiment_by_the_name_that_reproduce_takes(overheard: Command):
    said = overheard("list", "papers")
    assert said.code == 0
    for name, paper in find_papers().items():
        for experiment in paper.studies():
            assert f"{name}/{experiment}  " in said.out


def test_a_page_of_nothing_says_what_to_run(overheard: Command, tmp_path: Path):
    said = overheard("reproduce", "--report", "--out", tmp_path / "none")
    assert_user_error(said, "run an experiment first")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("decaf/table3", "--seed", "1", "--runs", "2"), "not both"),
        (("--all", "--only", "audit"), "name it"),
        (("--report", "--arm", "epsilon 5"), "name it"),
        (("whispers/table4", "--arm", "epsilon 3"), "its arms: no defense, epsilon 1"),
        (("shift/figure5", "--arm", "no defense"), "leave out --arm"),
        (("--report", "--quick"), "--report runs nothing"),
        (("--report", "--runs", "1"), "--report runs nothing"),
        (("--all", "--markdown", "a.md"), "--markdown belongs to --report"),
        (("whispers/table3", "--quick", "--only", "mnist"), "choose among mnist_alpha_0.5"),
    ],
)
def test_options_that_select_nothing_sensible_are_refused(
    overheard: Command, tmp_path: Path, options: tuple[str, ...], message: str
):
    said = overheard("reproduce", *options, "--out", tmp_path / "out")
    assert said.code != 0
    assert message in " ".join(said.err.replace("│", " ").split())


def test_all_runs_what_it_can_names_the_rest_and_writes_the_page(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ran = list[str]()

    def reproduce(name: str, folder: Path, *, quick: bool, **rest: object) -> None:
        if name == "decaf/table4":
            raise DataError("there are no clothes")
        ran.append(name)
        folder.mkdir(parents=True, exist_ok=True)
        write_values(StoredValues(name, quick, "", ()), folder)

    monkeypatch.setattr(commands, "reproduce", reproduce)
    said = overheard("reproduce", "--all", "--quick", "--out", tmp_path)
    assert said.code == 0
    assert "decaf/table3" in ran
    assert "decaf/table4 was left out: there are no clothes" in said.err
    assert "Left out: 1 of " in said.out
    assert (tmp_path / "index.html").exists()
    assert overheard("reproduce", "--report", "--out", tmp_path).code == 0

    # What is stored is not run again, unless seeds or a rerun are asked for.
    every = list(ran)
    ran.clear()
    said = overheard("reproduce", "--all", "--quick", "--out", tmp_path)
    assert "Experiments to run: 1" in said.out
    assert ran == []
    overheard("reproduce", "--all", "--quick", "--rerun", "--out", tmp_path)
    assert ran == every


def test_the_conclusions_are_written_to_a_file(overheard: Command, tmp_path: Path):
    path = tmp_path / "conclusions.md"
    said = overheard("reproduce", "--report", "--out", tmp_path, "--markdown", path)
    assert said.code == 0
    assert "shift/figure6: undecided" in said.out
    assert "shift: experiments " in said.out
    assert "| shift/figure5 | " in path.read_text("utf-8")


def test_prints_reproduced_and_published_values(capsys):
    figures = (
        ReproducedValue("l1", "mnist", 0.1234, 0.1, 0.15, 0.12, "lower"),
        ReproducedValue("l2", "mnist", 0.5, None, None, None, "lower"),
    )
    print_reproduction(
        Study("table1", "A table", "Ours is smaller.", ()), figures, Console(width=120)
    )
    told = capsys.readouterr().out
    lines = {line.split("│")[1].strip(): line for line in told.splitlines() if "│" in line}
    assert "0.123" in lines["l1"]
    assert "0.100 to 0.150" in lines["l1"]
    assert "0.120" in lines["l1"]
    assert "not published" in lines["l2"]
    assert "A table" in told
    assert "Ours is smaller." in told
