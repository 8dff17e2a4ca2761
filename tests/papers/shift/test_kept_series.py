from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.papers.shift.followed import Followed
from overheard.papers.shift.kept_series import FILE, load, save
from overheard.papers.shift.measure import ACCURACY, LOSS

SAVED = (
    Followed(LOSS, 5, ({0: 1.5, 5: 0.1 + 0.2},), ({0: 1.5},)),
    Followed(ACCURACY, 5, ({},), ({},)),
)


def test_saved_series_read_back_exactly(tmp_path: Path) -> None:
    save(SAVED, tmp_path)
    assert load(tmp_path, (LOSS, ACCURACY)) == SAVED


def test_series_of_other_measures_are_not_loaded(tmp_path: Path) -> None:
    assert load(tmp_path, (LOSS,)) is None
    save(SAVED, tmp_path)
    assert load(tmp_path, (LOSS,)) is None
    assert load(tmp_path, (ACCURACY, LOSS)) is None


def test_a_damaged_file_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[{", encoding="utf-8")
    with pytest.raises(OutputError, match=r"series\.json: the file is damaged"):
        load(tmp_path, (LOSS,))
