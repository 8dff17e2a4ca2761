"""Digests of a run."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save

from overheard.archive.run_digests import check_run_digests, list_round, write_run_digests
from overheard.archive.self_digest import check_digest, encode_with_digest
from overheard.core.errors import OutputError
from overheard.disk.digests import TRUST_VARIABLE

LISTED = (
    "truth.json",
    "origin.json",
    "home/r0001.safetensors",
    "transcript/manifest.json",
    "transcript/rounds/r0000/messages.jsonl",
    "rebuilt/transcript/rounds/r0000/messages.jsonl",
)


LEFT_OUT = (
    "seconds.json",
    "transcript/rounds/r0000/0000-server-broadcast.safetensors",
    "transcript/rounds/r0000/.DS_Store",
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name in (*LISTED, *LEFT_OUT):
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    write_run_digests(tmp_path / "run")
    check_run_digests(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("name", LISTED)
def test_a_file_that_differs_is_named(
    run: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run / name
    path.write_text(name.upper())
    write_run_digests(run)  # once written, they stay
    with pytest.raises(OutputError, match=f"{path} was altered .*remove the folder {run}"):
        check_run_digests(run)
    path.unlink()
    with pytest.raises(OutputError, match=f"{path} is missing"):
        check_run_digests(run)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    check_run_digests(run)


def test_a_message_list_that_was_added_is_named(run: Path) -> None:
    path = run / "transcript" / "rounds" / "r0001" / "messages.jsonl"
    path.parent.mkdir()
    path.write_text("")
    with pytest.raises(OutputError, match=f"{path} was added"):
        check_run_digests(run)


def test_files_that_are_not_listed_may_change(run: Path) -> None:
    for name in LEFT_OUT:
        (run / name).write_text("other")
        (run / name).unlink()
    check_run_digests(run)


@pytest.mark.parametrize("content", ["[]", "{}", '{"truth.json": "1", "truth.json": "1"}'])
def test_a_damaged_list_is_named(run: Path, content: str) -> None:
    (run / "sha256.json").write_text(content)
    with pytest.raises(OutputError, match=r"sha256\.json is damaged"):
        check_run_digests(run)


def test_of_a_run_that_is_not_complete_the_listed_rounds_are_compared(tmp_path: Path) -> None:
    run, rounds = tmp_path, tmp_path / "transcript" / "rounds"
    check_run_digests(run)
    for number in (0, 1):
        (rounds / f"r000{number}").mkdir(parents=True)
        (rounds / f"r000{number}" / "messages.jsonl").write_text("sent")
    list_round(run, 0)
    check_run_digests(run)  # the process was killed before the second round was listed
    list_round(run, 1)
    (rounds / "r0000" / "messages.jsonl").write_text("other")
    list_round(run, 0)  # once listed, it stays
    with pytest.raises(OutputError, match=r"r0000/messages\.jsonl was altered"):
        check_run_digests(run)


def test_a_list_that_a_power_cut_left_empty_is_none(run: Path) -> None:
    (run / "sha256.json").write_text("")
    check_run_digests(run)


def test_who_trusts_the_store_leaves_its_list_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sha256.json").write_text("[]")
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    list_round(tmp_path, 0)
    write_run_digests(tmp_path)
    assert (tmp_path / "sha256.json").read_text() == "[]"


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
