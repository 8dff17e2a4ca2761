"""Coverage is counted by the number of labels that rise."""

from pathlib import Path

import numpy as np
import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.digits import Digits
from overheard_studies.measurements import shift_alarms, shift_sets
from overheard_studies.measurements.shift_alarms import Cell, share_after
from overheard_studies.study import MeasurementRun


def test_sets_have_one_label_a_few_or_half_of_them() -> None:
    drawn = shift_sets.draw_sets(10, 20, np.random.default_rng(0))
    sizes = {
        kind: {int(rising.sum()) for name, rising in drawn if name == kind}
        for kind in shift_sets.SETS
    }
    assert sizes == {"one": {1}, "few": {2, 3, 4, 5}, "half": {5}}
    # 20 single labels: each of the ten twice.
    assert sum(rising for kind, rising in drawn if kind == "one").tolist() == [2] * 10


def test_two_labels_have_only_sets_of_one() -> None:
    drawn = shift_sets.draw_sets(2, 3, np.random.default_rng(0))
    assert [kind for kind, _ in drawn] == ["one"] * 3


def test_the_share_of_one_of_ten_labels_rises_to_4_thirteenths_at_one_of_two_others() -> None:
    one = np.arange(10) == 3
    base = np.full(10, 0.1)
    assert share_after(Cell(0, 0, 2, 300, 400), base, one) == pytest.approx(4 / 13)
    assert share_after(Cell(0, 0, 3, 300, 400), base, one) == pytest.approx((4 / 13 + 0.1) / 2)


@pytest.mark.slow
def test_a_cell_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift_alarms, "SOURCES", (Digits(),))
    monkeypatch.setattr(shift_sets, "ATTACK", shift_sets.ShiftTracking(most_virtual=8))
    monkeypatch.setattr(shift_sets, "CELLS", (Cell(0, 0, 2, 60, 300),))
    shift_alarms.load.cache_clear()
    run = MeasurementRun(tmp_path, Resources(), quick=True, seeds=())
    values = {one.name: one.value for one in shift_sets._measure(0, run)}
    shift_alarms.load.cache_clear()
    assert {f"cell_0_{kind}_covered" for kind in shift_sets.SETS} <= set(values)
    assert 0 < values["cell_0_one_width"] < 2
