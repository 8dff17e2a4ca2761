"""From Python an experiment runs by its name and leaves what the command leaves."""

from pathlib import Path

import pytest

import overheard
from overheard.core.errors import PlanError
from overheard.papers import reproduce as module
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.record import read_figures
from tests.papers.test_experiment import RESOURCES, Counting


def test_returns_the_figures_that_it_leaves(
    tiny_benchmark: DecafBenchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "find_experiment", {"a/b": Counting(tiny_benchmark)}.get)
    figures = overheard.reproduce("a/b", tmp_path, quick=True, seed=3, resources=RESOURCES)
    # ten users, one seed
    assert [(one.name, one.ours) for one in figures] == [("first", 10), ("second", 10)]
    assert read_figures(tmp_path) == figures
    assert (tmp_path / "figures.html").exists()
    assert (tmp_path / "first" / "runs" / "no_defense-seed3").is_dir()


def test_an_unknown_experiment_is_refused_with_those_that_there_are(tmp_path: Path):
    with pytest.raises(PlanError, match="table3, table4"):
        overheard.reproduce("decaf/table99", tmp_path)
