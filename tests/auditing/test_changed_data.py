"""Results of an audit never outlive the data that they were made from."""

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overheard.auditing.run import audit
from overheard.core.errors import OutputError
from overheard.data.dataset import DataSource
from overheard.data.datasets.own import Own
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from tests.auditing.conftest import HERE
from tests.auditing.plans import TINY, replace_tables

FUNCTION = """
import numpy
def load():
    with numpy.load("function.npz") as file:
        return file["x"], file["y"]
"""

Write = Callable[[int], None]
"""Writes other data for each number, and the same for the same number."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "data_of_mine.py").write_text(FUNCTION)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("data_of_mine", None)


def write_arrays(name: str, number: int) -> None:
    labels = np.arange(600) % 10
    inputs = np.random.default_rng(number).normal(size=(600, 64)).astype("f4")
    inputs[np.arange(600), labels] += 3
    np.savez(name, x=inputs.reshape(-1, 1, 8, 8), y=labels)


def write_table(number: int) -> None:
    lines = [
        f"{label},{label + one / 100},{one * number}"
        for one in range(60)
        for label in range(10)
    ]
    lines[number] = "5,5,5"
    Path("spare.csv").write_text("\n".join(("label,a,b", *lines)))


SOURCES: dict[str, tuple[DataSource, Write]] = {
    "spare.npz": (Own("spare.npz"), lambda number: write_arrays("spare.npz", number)),
    "spare.csv": (Own("spare.csv"), write_table),
    "data_of_mine:load": (
        Own("data_of_mine:load"),
        lambda number: write_arrays("function.npz", number),
    ),
}


def cells(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("cells/*")}


def run_audit(plan: Plan, folder: str, *, rerun: bool = False, **more: Path) -> Audit:
    return audit(plan, Path(folder), resources=HERE, rerun=rerun, **more)


@pytest.mark.parametrize("name", SOURCES)
def test_a_simulation_with_other_data_is_refused_by_the_name_of_the_data(
    home: Path, name: str
) -> None:
    source, write = SOURCES[name]
    plan = replace_tables(TINY, data=TINY.data.model_copy(update={"source": source}))
    write(1)
    first = run_audit(plan, "audit")
    before = cells(home / "audit")
    assert before
    write(1)  # the same content, with another time
    assert run_audit(plan, "audit") == first
    assert cells(home / "audit") == before
    write(2)
    with pytest.raises(OutputError, match=rf"other data made .*changed: {name}\).*--rerun"):
        run_audit(plan, "audit")
    assert cells(home / "audit") == before
    again = run_audit(plan, "audit", rerun=True)
    assert again.findings == run_audit(plan, "fresh").findings != first.findings


def test_claims_about_a_recording_are_made_anew_from_other_data(
    home: Path, recording: Path
) -> None:
    source, write = SOURCES["spare.npz"]
    # The run's own data stay; the attackers' examples are those of a file.
    threat = TINY.threats[0].model_copy(update={"auxiliary_from": source})
    plan = replace_tables(TINY, threats=(threat,))
    write(1)
    first = run_audit(plan, "audit", recording=recording)
    before = cells(home / "audit")
    write(1)
    assert run_audit(plan, "audit", recording=recording) == first
    assert cells(home / "audit") == before
    write(2)
    again = run_audit(plan, "audit", recording=recording)
    assert again.findings == run_audit(plan, "fresh", recording=recording).findings
    assert again.findings != first.findings


def test_runs_stay_if_only_the_attackers_data_change(home: Path) -> None:
    source, write = SOURCES["spare.npz"]
    threat = TINY.threats[0].model_copy(update={"auxiliary_from": source})
    plan = replace_tables(TINY, threats=(threat,))
    write(1)
    first = run_audit(plan, "audit")
    write(2)
    again = run_audit(plan, "audit")
    assert again.findings != first.findings
    assert [replace(one, seconds=None) for one in again.arms] == [
        replace(one, seconds=None) for one in first.arms
    ]
