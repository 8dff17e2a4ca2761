from pathlib import Path

import pytest

from overheard.core.errors import DataError
from overheard.data.reading.folder import FOLDER_VARIABLE, data_folder


def test_a_given_folder_takes_precedence_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert data_folder(None) == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder(tmp_path / "other") == tmp_path / "other"


def test_a_missing_folder_is_refused_with_the_setting_to_correct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="correct --data"):
        data_folder(tmp_path / "none")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(DataError, match=f"correct the environment variable {FOLDER_VARIABLE}"):
        data_folder(None)
