from pathlib import Path

import pytest

from overheard.core.errors import DataError
from overheard.data.reading.folder import FOLDER_VARIABLE, data_folder, find_file


def test_a_given_folder_takes_precedence_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert data_folder(None) == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder(tmp_path / "other") == tmp_path / "other"


@pytest.mark.parametrize("value", [None, ""])
def test_without_any_setting_there_is_no_folder(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(FOLDER_VARIABLE, value)
    assert data_folder(None) is None


def test_a_missing_folder_is_refused_with_the_setting_to_correct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="correct --data"):
        data_folder(tmp_path / "none")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(DataError, match=f"correct the environment variable {FOLDER_VARIABLE}"):
        data_folder(None)


def test_a_file_is_found_in_its_sub_folder_or_directly(tmp_path: Path) -> None:
    assert find_file(tmp_path, ("set/a.npz", "set/b.npz")) is None
    (tmp_path / "b.npz").touch()
    assert find_file(tmp_path, ("set/a.npz", "set/b.npz")) == tmp_path / "b.npz"
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.npz").touch()
    assert find_file(tmp_path, ("set/a.npz", "set/b.npz")) == tmp_path / "set" / "a.npz"
