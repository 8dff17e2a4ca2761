"""Synthetic audits without a leak are seldom judged to leak; planted ones mostly are."""

from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.measurements import calibration as module
from overheard_studies.measurements.calibration import calibration
from overheard_studies.measurements.synthetic import (
    AuditCell,
    null_cells,
    power_cells,
    share_cells,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import MeasurementRun
from overheard_studies.values import ReproducedValue, make_value


def measure(key: str, folder: Path) -> dict[str, ReproducedValue]:
    (one,) = [each for each in calibration().measurements if each.key == key]
    run = MeasurementRun(folder, Resources(), quick=True, seeds=())
    return {value.name: value for value in one.values(run)}


@pytest.mark.slow
def test_claims_that_know_half_of_the_truth_are_found_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_AUDITS", 12)
    null = AuditCell("shares", 1, 5, 1, 0.0, 0.0).key
    (known, *_) = [cell.key for cell in power_cells() if cell.truth == 0.5]
    small = measure(f"verdicts: {null}", tmp_path)[f"verdicts: {null}: small_p"]
    found = measure(f"verdicts: {known}", tmp_path)[f"verdicts: {known}: leaks"]
    assert small.value <= 2 / 12
    assert found.value >= 10 / 12


@pytest.mark.parametrize("kind", ["people", "linkage", "records", "shift"])
def test_every_kind_of_claim_is_drawn(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_AUDITS", 2)
    (cell,) = [one for one in null_cells() if (one.kind, one.runs, one.clients) == (kind, 3, 5)]
    values = measure(f"verdicts: {cell.key}", tmp_path)
    assert set(values) == {f"verdicts: {cell.key}: {what}" for what in ("small_p", "leaks")}


def test_intervals_of_normal_figures_cover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_AUDITS", 40)
    cell = next(one for one in share_cells() if (one.runs, one.clients) == (10, 20))
    covered = measure(f"intervals: {cell.key}", tmp_path)[f"intervals: {cell.key}: one"]
    assert covered.value >= 0.85


@pytest.mark.parametrize(("share", "holds"), [(0.02, "yes"), (0.06, "no")])
def test_a_bound_is_broken_by_one_cell(share: float, holds: str) -> None:
    values = [make_value(f"verdicts: {one.key}: small_p", "", 0.02) for one in null_cells()]
    values[7] = make_value(values[7].name, "", share)
    bounds = {one.key: one for one in calibration().conclusions}
    judged = bounds["false_verdicts_are_rare"].judge(StudyRuns({}, {}, Path()), values)
    assert judged.holds == holds
