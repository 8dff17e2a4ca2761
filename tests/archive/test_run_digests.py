"""A file of a complete run that was altered, removed or added is named."""

from pathlib import Path

import pytest

from overheard.archive.run_digests import check_run_digests, list_round, write_run_digests
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
