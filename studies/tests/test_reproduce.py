"""An experiment runs from Python by its name and writes the same files as the command."""

import re
from pathlib import Path

import pytest

import overheard_studies.reproduce as module
from overheard.core.errors import PlanError
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from overheard_studies import core_time, study
from overheard_studies.decaf.setting import DecafBenchmark
from overheard_studies.how_run import CHECKOUT, UNCOMMITTED, read_commit
from overheard_studies.reproduce import reproduce
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, load_values
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
    stored = load_values(tmp_path)
    assert stored.quick == is_reduced
    assert stored.how_run is not None
    assert stored.how_run.seeds == seeds
    runs = "1 run" if is_reduced else "2 runs"
    size = f"2 of 2 audits, 10 clients of 60 examples, 1 round, {runs}"
    assert stored.how_run.size == size
    assert f"Size here: <bdi>{size}</bdi>" in (tmp_path / "figures.html").read_text()
    assert ("reduced size" in (tmp_path / "figures.html").read_text()) == is_reduced


def test_core_time_adds_up_over_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock = iter([10.0, 12.0, 12.5, 3.0, 8.0, 8.0, None, 9.0, 9.0, 1.0, 2.0, 2.0])
    empty = Study("empty", "Nothing", "None.")
    monkeypatch.setattr(module, "find_study", {"a/b": empty}.get)
    monkeypatch.setattr(core_time, "core_seconds", lambda: next(clock))
    spent = list[float | None]()
    for _ in range(4):
        reproduce("a/b", tmp_path, resources=RESOURCES)
        how_run = load_values(tmp_path).how_run
        spent.append(None if how_run is None else how_run.core_seconds)
    # Two seconds, of 2.5 with the writing, and 5 more; the third command cannot tell.
    assert spent == [2.0, 7.5, None, 8.5]


def test_core_time_of_an_interrupted_command_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = iter([10.0, 14.0, 1.0, 2.0, 2.0])

    def interrupt(run: MeasurementRun) -> tuple[ReproducedValue, ...]:
        raise KeyboardInterrupt

    interrupted = Study("one", "One", "None.", measurements=(Measurement("x", interrupt),))
    empty = Study("one", "One", "None.")
    monkeypatch.setattr(core_time, "core_seconds", lambda: next(clock))
    monkeypatch.setattr(module, "find_study", {"a/b": interrupted}.get)
    with pytest.raises(KeyboardInterrupt):
        reproduce("a/b", tmp_path, resources=RESOURCES)
    monkeypatch.setattr(module, "find_study", {"a/b": empty}.get)
    reproduce("a/b", tmp_path, resources=RESOURCES)
    how_run = load_values(tmp_path).how_run
    assert how_run is not None
    assert how_run.core_seconds == 5.0


def test_core_time_of_commands_at_the_same_time_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 3.0, 5.0, 5.0])
    monkeypatch.setattr(core_time, "core_seconds", lambda: next(clock))
    one, other = core_time.CoreTime(tmp_path), core_time.CoreTime(tmp_path)
    one.store()
    other.store()
    assert other.total() == 13.0
    assert (tmp_path / core_time.CORE_TIME_FILE).read_text() == "8.0\n"


@pytest.mark.parametrize(
    "content", ['{"a": 1}', "NaN", "Infinity", "-5", '"7"', "true", "1e12", "9" * 10**6, ""]
)
def test_a_damaged_sum_of_core_time_counts_as_none(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(core_time, "core_seconds", lambda: 3.0)
    (tmp_path / core_time.CORE_TIME_FILE).write_text(content)
    assert core_time.CoreTime(tmp_path).total() == 0.0


def test_what_cannot_be_run_here_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    photos = Study("photos", "Photos", "None.", reason_not_run="OpenImages is not here")
    monkeypatch.setattr(module, "find_study", {"a/b": photos}.get)
    with pytest.raises(PlanError, match="cannot be run here: OpenImages"):
        reproduce("a/b", tmp_path)


def test_the_commit_is_that_of_a_checkout_alone(tmp_path: Path):
    assert read_commit(tmp_path) == ""
    if (CHECKOUT / ".git").exists():
        assert re.fullmatch(rf"[0-9a-f]{{40}}({UNCOMMITTED})?", read_commit(CHECKOUT))


def test_an_unknown_experiment_is_refused_with_the_known_ones(tmp_path: Path):
    with pytest.raises(PlanError, match="table3, table4"):
        reproduce("decaf/table99", tmp_path)
