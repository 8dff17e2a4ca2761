"""An experiment runs from Python by its name and writes the same files as the command."""

from pathlib import Path

import pytest

import overheard_studies.reproduce as module
from overheard.core.errors import PlanError
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from overheard_studies import study
from overheard_studies.decaf.setting import DecafBenchmark
from overheard_studies.reproduce import reproduce
from overheard_studies.values import load_values
from studies.tests.test_experiment import RESOURCES, counting


def test_returns_the_values_that_it_writes(
    tiny_benchmark: DecafBenchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "find_study", {"a/b": counting(tiny_benchmark)}.get)
    values = reproduce("a/b", tmp_path, quick=True, seeds=(3,), resources=RESOURCES)
    # ten users, one seed
    assert [(one.name, one.value) for one in values] == [("first", 10), ("second", 10)]
    assert load_values(tmp_path).values == values
    assert (tmp_path / "figures.html").exists()
    assert (tmp_path / "first" / "runs" / "no_defense-seed3").is_dir()


@pytest.mark.parametrize(("seeds", "is_reduced"), [((3,), True), ((3, 4), False)])
def test_values_of_fewer_seeds_are_not_compared_with_the_paper(
    seeds: tuple[int, ...],
    is_reduced: bool,
    tiny_benchmark: DecafBenchmark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    def audit(plan: Plan, folder: Path, **rest: object) -> Audit:
        return Audit("", "", (), (), (), (), plan.toml(), {})

    monkeypatch.setattr(module, "find_study", {"a/b": counting(tiny_benchmark)}.get)
    monkeypatch.setattr(study, "audit", audit)
    monkeypatch.setattr(study, "write_report", lambda *_: None)
    reproduce("a/b", tmp_path, seeds=seeds, resources=RESOURCES)
    assert load_values(tmp_path).quick == is_reduced
    assert ("reduced size" in (tmp_path / "figures.html").read_text()) == is_reduced


def test_an_unknown_experiment_is_refused_with_the_known_ones(tmp_path: Path):
    with pytest.raises(PlanError, match="table3, table4"):
        reproduce("decaf/table99", tmp_path)
