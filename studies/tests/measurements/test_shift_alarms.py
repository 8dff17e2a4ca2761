"""A cell counts alarms, and detects what it is told to detect."""

from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.digits import Digits
from overheard_studies.measurements import shift_alarms as module
from overheard_studies.measurements.shift_alarms import Cell, list_cells, shift_alarms
from overheard_studies.study import MeasurementRun


def test_there_are_24_cells() -> None:
    assert len({one.name for one in list_cells()}) == 24
    assert len(shift_alarms().measurements) == 24


@pytest.mark.slow
def test_a_block_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SOURCES", (Digits(),) * 4)
    monkeypatch.setattr(module, "ATTACK", module.ShiftTracking(most_virtual=8))
    monkeypatch.setattr(module, "list_cells", lambda: [Cell(0, 0, 2, 60, 300)])
    module.load.cache_clear()
    run = MeasurementRun(tmp_path, Resources(), quick=True, seeds=())
    values = {one.name: one.value for one in module._measure(0, run)}
    module.load.cache_clear()
    assert {"cell_00_not_calibrated", "cell_00_auc", "cell_00_covered"} <= set(values)
    assert 0 <= values["cell_00_auc"] <= 1
