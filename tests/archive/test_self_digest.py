"""A file that states its SHA-256 is refused once any of its bytes differs."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save

from overheard.archive.self_digest import check_digest, encode_with_digest
from overheard.core.errors import OutputError
from overheard.disk.digests import TRUST_VARIABLE

TENSORS = {"b": torch.tensor([1.0, -2.0]), "a": torch.tensor([[3, 4]])}
DOCUMENT = {"key": "0" * 64, "names": ['Zoë "x"', "\\", "\u202e"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.safetensors"
    path.write_bytes(encode_with_digest(TENSORS, "some entry", DOCUMENT))
    return path


def test_equal_contents_give_equal_files(path: Path) -> None:
    assert path.read_bytes() == encode_with_digest(TENSORS, "some entry", DOCUMENT)
    assert torch.equal(load_file(path)["b"], TENSORS["b"])
    assert check_digest(path)


def test_every_flipped_bit_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = path.read_bytes()
    begin = content.index(b"sha256")
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        if place >= begin + 75:  # after the digest
            with pytest.raises(OutputError, match=f"{path} was altered .*--trust-store"):
                check_digest(path)
        else:
            is_noticed = False
            try:
                is_noticed = not check_digest(path)
            except OutputError:
                is_noticed = True
            # Another length of the header, or name of the entry, is refused by who reads it.
            assert is_noticed or place < begin
    path.write_bytes(changed)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert check_digest(path)


def test_a_file_without_a_digest_states_none(path: Path) -> None:
    path.write_bytes(save(TENSORS))
    assert not check_digest(path)
    path.write_bytes(b"")
    assert not check_digest(path)
