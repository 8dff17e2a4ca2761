"""Cached tensors are loaded as saved, or reported as damaged."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from overheard.archive.self_digest import encode_with_digest
from overheard.archive.tensor_cache import KEY_METADATA, CodeTensorCache, FolderTensorCache
from overheard.core.errors import OutputError
from overheard.disk.digests import NOT_COMPARED

KEY, OTHER = "0123abcd", "ffff0000"
TENSORS = {"b": torch.tensor([1.0, -2.0]), "a": torch.tensor([[3, 4]]), "c": torch.tensor(True)}


@pytest.fixture
def folder_cache(tmp_path: Path) -> FolderTensorCache:
    return FolderTensorCache(tmp_path / "cache")


def test_tensors_are_loaded_as_saved(folder_cache: FolderTensorCache) -> None:
    folder_cache.save(KEY, TENSORS)
    back = folder_cache.load(KEY)
    assert back is not None
    assert back.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)
    assert (
        FolderTensorCache(folder_cache.folder).load(KEY) is not None
    )  # in another process too


def test_a_concurrent_save_of_the_same_tensors_is_no_error(
    folder_cache: FolderTensorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_first(path: Path, content: bytes, *, inside: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        raise OutputError("the part was renamed by another")

    monkeypatch.setattr("overheard.archive.tensor_cache.write_bytes", save_first)
    folder_cache.save(KEY, TENSORS)
    assert folder_cache.load(KEY) is not None


def test_a_missing_key_gives_none_and_writes_nothing(folder_cache: FolderTensorCache) -> None:
    assert folder_cache.load(KEY) is None
    assert not folder_cache.folder.exists()


def test_a_second_save_replaces_the_first(folder_cache: FolderTensorCache) -> None:
    folder_cache.save(KEY, TENSORS)
    folder_cache.save(KEY, {"z": torch.zeros(2)})
    back = folder_cache.load(KEY)
    assert back is not None
    assert set(back) == {"z"}
    assert [path.name for path in folder_cache.folder.iterdir()] == [f"{KEY}.safetensors"]


def test_views_of_one_memory_are_saved_separately(folder_cache: FolderTensorCache) -> None:
    whole = torch.arange(6.0)
    folder_cache.save(KEY, {"all": whole, "odd": whole[1::2]})
    back = folder_cache.load(KEY)
    assert back is not None
    assert back["odd"].tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize("key", ["", "abc", "../../etc", "ABCDEF01", "0123abcd.", "0" * 129])
def test_refuses_keys_that_are_no_digests(folder_cache: FolderTensorCache, key: str) -> None:
    for call in (lambda: folder_cache.load(key), lambda: folder_cache.save(key, TENSORS)):
        with pytest.raises(ValueError, match="a key must have 8 to 128 hexadecimal digits"):
            call()
    assert not folder_cache.folder.exists()


def test_a_truncated_file_is_reported_with_a_remedy(folder_cache: FolderTensorCache) -> None:
    folder_cache.save(KEY, TENSORS)
    (path,) = folder_cache.folder.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(OutputError, match=f"{path} was altered .*: delete the file"):
        folder_cache.load(KEY)


def test_a_flipped_bit_of_a_number_is_reported(folder_cache: FolderTensorCache) -> None:
    folder_cache.save(KEY, TENSORS)
    (path,) = folder_cache.folder.iterdir()
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OutputError, match=f"{path} was altered"):
        folder_cache.load(KEY)


def test_a_file_of_another_key_is_refused(folder_cache: FolderTensorCache) -> None:
    folder_cache.save(KEY, TENSORS)
    (path,) = folder_cache.folder.iterdir()
    path.rename(path.with_name(f"{OTHER}.safetensors"))
    with pytest.raises(OutputError, match="it has another key"):
        folder_cache.load(OTHER)
    path.write_bytes(encode_with_digest({"b": torch.zeros(2)}, "other entry", {}))
    with pytest.raises(OutputError, match="it has another key"):
        folder_cache.load(KEY)


def test_a_file_of_an_older_overheard_without_a_digest_counts_as_none(
    folder_cache: FolderTensorCache,
) -> None:
    folder_cache.save(KEY, TENSORS)
    (path,) = folder_cache.folder.iterdir()
    path.write_bytes(save(TENSORS, {KEY_METADATA: KEY}))
    assert folder_cache.load(KEY) is None


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder_cache = FolderTensorCache(tmp_path_factory.mktemp("cache"))
    (folder_cache.folder / f"{KEY}.safetensors").write_bytes(content)
    with pytest.raises(OutputError, match="delete the file"):
        folder_cache.load(KEY)


def test_what_a_trusted_store_gave_is_for_those_alone_who_trust_it(
    folder_cache: FolderTensorCache,
) -> None:
    compared = CodeTensorCache(folder_cache, "12")
    trusted = CodeTensorCache(folder_cache, f"12{NOT_COMPARED}")
    compared.save(KEY, TENSORS)
    trusted.save(OTHER, TENSORS)
    assert trusted.load(KEY) is not None
    assert trusted.load(OTHER) is not None
    assert compared.load(OTHER) is None
