from pathlib import Path

import pytest

from overheard_studies.shift.cached_series import SERIES_FILE, load_series, save_series
from overheard_studies.shift.measure import ACCURACY, LOSS
from overheard_studies.shift.measured_series import MeasuredSeries

SAVED = (
    MeasuredSeries(LOSS, 5, ({0: 1.5, 5: 0.1 + 0.2},), ({0: 1.5},)),
    MeasuredSeries(ACCURACY, 5, ({},), ({},)),
)


ORIGIN = "seeds = [0]"


def test_saved_series_read_back_exactly(tmp_path: Path) -> None:
    save_series(SAVED, tmp_path, ORIGIN)
    assert load_series(tmp_path, (LOSS, ACCURACY), ORIGIN) == SAVED


def test_series_of_other_measures_are_not_loaded(tmp_path: Path) -> None:
    assert load_series(tmp_path, (LOSS,), ORIGIN) is None
    save_series(SAVED, tmp_path, ORIGIN)
    assert load_series(tmp_path, (LOSS,), ORIGIN) is None
    assert load_series(tmp_path, (ACCURACY, LOSS), ORIGIN) is None


def test_series_of_other_seeds_or_code_are_not_loaded(tmp_path: Path) -> None:
    save_series(SAVED, tmp_path, ORIGIN)
    assert load_series(tmp_path, (LOSS, ACCURACY), "seeds = [0, 1]") is None


@pytest.mark.parametrize("content", ["[{", "[]"])
def test_a_file_of_another_form_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / SERIES_FILE).write_text(content, encoding="utf-8")
    assert load_series(tmp_path, (LOSS,), ORIGIN) is None
