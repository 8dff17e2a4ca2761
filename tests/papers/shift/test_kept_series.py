from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.papers.shift.followed import Followed
from overheard.papers.shift.kept_series import FILE, load, save
from overheard.papers.shift.measure import ACCURACY, LOSS

KEPT = (
    Followed(LOSS, 5, ({0: 1.5, 5: 0.1 + 0.2},), ({0: 1.5},)),
    Followed(ACCURACY, 5, ({},), ({},)),
)


def test_what_is_kept_reads_back_the_same_to_the_last_bit(tmp_path: Path) -> None:
    save(KEPT, tmp_path)
    assert load(tmp_path, (LOSS, ACCURACY)) == KEPT


def test_other_measures_are_not_taken_for_those_asked_for(tmp_path: Path) -> None:
    assert load(tmp_path, (LOSS,)) is None
    save(KEPT, tmp_path)
    assert load(tmp_path, (LOSS,)) is None
    assert load(tmp_path, (ACCURACY, LOSS)) is None


def test_a_damaged_file_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[{", encoding="utf-8")
    with pytest.raises(OutputError, match=r"series\.json: is damaged"):
        load(tmp_path, (LOSS,))
