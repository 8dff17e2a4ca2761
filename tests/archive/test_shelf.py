"""What is kept on a shelf comes back as it was, or is said to be spoilt."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from overheard.archive.shelf import FolderShelf
from overheard.core.errors import OutputError

KEY, OTHER = "0123abcd", "ffff0000"
KEPT = {"b": torch.tensor([1.0, -2.0]), "a": torch.tensor([[3, 4]]), "c": torch.tensor(True)}


@pytest.fixture
def shelf(tmp_path: Path) -> FolderShelf:
    return FolderShelf(tmp_path / "bank")


def test_what_was_saved_is_loaded_the_same(shelf: FolderShelf) -> None:
    shelf.save(KEY, KEPT)
    back = shelf.load(KEY)
    assert back is not None
    assert back.keys() == KEPT.keys()
    for name, tensor in KEPT.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)
    assert FolderShelf(shelf.folder).load(KEY) is not None  # in another process too


def test_another_process_that_saves_the_same_at_once_is_no_error(
    shelf: FolderShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten(path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        raise OutputError("the part was renamed by another")

    monkeypatch.setattr("overheard.archive.shelf.write_bytes", beaten)
    shelf.save(KEY, KEPT)
    assert shelf.load(KEY) is not None


def test_what_was_not_saved_is_not_there_and_asking_writes_nothing(shelf: FolderShelf) -> None:
    assert shelf.load(KEY) is None
    assert not shelf.folder.exists()


def test_the_last_that_was_saved_is_kept_and_no_part_of_it_besides(shelf: FolderShelf) -> None:
    shelf.save(KEY, KEPT)
    shelf.save(KEY, {"z": torch.zeros(2)})
    back = shelf.load(KEY)
    assert back is not None
    assert set(back) == {"z"}
    assert [path.name for path in shelf.folder.iterdir()] == [f"{KEY}.safetensors"]


def test_views_of_one_memory_are_kept_apart(shelf: FolderShelf) -> None:
    whole = torch.arange(6.0)
    shelf.save(KEY, {"all": whole, "odd": whole[1::2]})
    back = shelf.load(KEY)
    assert back is not None
    assert back["odd"].tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize("key", ["", "abc", "../../etc", "ABCDEF01", "0123abcd.", "0" * 129])
def test_refuses_keys_that_are_no_digests(shelf: FolderShelf, key: str) -> None:
    for ask in (lambda: shelf.load(key), lambda: shelf.save(key, KEPT)):
        with pytest.raises(ValueError, match="a key is a hexadecimal digest"):
            ask()
    assert not shelf.folder.exists()


def test_a_file_that_was_cut_short_is_told_with_the_mend(shelf: FolderShelf) -> None:
    shelf.save(KEY, KEPT)
    (path,) = shelf.folder.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(
        OutputError, match=f"{path}: not what was kept there.*: delete the file"
    ):
        shelf.load(KEY)


def test_a_sound_file_of_something_else_is_not_taken_for_it(shelf: FolderShelf) -> None:
    shelf.save(KEY, KEPT)
    (path,) = shelf.folder.iterdir()
    path.rename(path.with_name(f"{OTHER}.safetensors"))
    with pytest.raises(OutputError, match="the file of something else"):
        shelf.load(OTHER)
    path.write_bytes(save({"b": torch.zeros(2)}))
    with pytest.raises(OutputError, match="the file of something else"):
        shelf.load(KEY)


@given(st.binary(max_size=60))
def test_no_bytes_at_all_do_anything_but_be_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    shelf = FolderShelf(tmp_path_factory.mktemp("bank"))
    (shelf.folder / f"{KEY}.safetensors").write_bytes(content)
    with pytest.raises(OutputError, match="delete the file"):
        shelf.load(KEY)
