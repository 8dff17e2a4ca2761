from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.papers.shift.cached_series import SERIES_FILE, load_series, save_series
from overheard.papers.shift.measure import ACCURACY, LOSS
from overheard.papers.shift.measured_series import MeasuredSeries

SAVED = (
    MeasuredSeries(LOSS, 5, ({0: 1.5, 5: 0.1 + 0.2},), ({0: 1.5},)),
    MeasuredSeries(ACCURACY, 5, ({},), ({},)),
)


def test_saved_series_read_back_exactly(tmp_path: Path) -> None:
    save_series(SAVED, tmp_path)
    assert load_series(tmp_path, (LOSS, ACCURACY)) == SAVED


def test_series_of_other_measures_are_not_loaded(tmp_path: Path) -> None:
    assert load_series(tmp_path, (LOSS,)) is None
    save_series(SAVED, tmp_path)
    assert load_series(tmp_path, (LOSS,)) is None
    assert load_series(tmp_path, (ACCURACY, LOSS)) is None


def test_a_damaged_file_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / SERIES_FILE).write_text("[{", encoding="utf-8")
    with pytest.raises(OutputError, match=r"series\.json: the file is damaged"):
        load_series(tmp_path, (LOSS,))
