"""Each run has a folder of its own, whoever else begins at the same moment."""

import os
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
import torch

from overheard.archive.purge_note import PurgeNote
from overheard.archive.reader import open_transcript
from overheard.core.errors import OutputError
from overheard.core.messages import Broadcast, MissingReply
from overheard.core.parties import SERVER, client
from overheard.disk.folder_lock import lock_folder
from overheard.recorders.async_writer import AsyncWriter, claim_folder
from overheard.recorders.run_info import RunInfo

SERVER_PROCESS = """
import sys
from pathlib import Path
import torch
from overheard.core.messages import Broadcast
from overheard.core.parties import SERVER
from overheard.recorders.async_writer import AsyncWriter, claim_folder
from overheard.recorders.run_info import RunInfo
writer = AsyncWriter(Path(sys.argv[1]), RunInfo("a framework 1.0"))
print("ready", flush=True)
sys.stdin.readline()
writer.begin_round([SERVER])
writer.write(SERVER, frozenset(), lambda: Broadcast({"w": torch.ones(2)}))
writer.close()
print(writer.folder)
"""


def write_round(writer: AsyncWriter) -> None:
    writer.begin_round([SERVER, client(0)])
    writer.write(SERVER, frozenset(), partial(Broadcast, {"w": torch.ones(2)}))
    writer.write(client(0), frozenset({SERVER}), partial(MissingReply, "late"))


def test_runs_that_begin_at_once_have_different_folders(tmp_path: Path) -> None:
    claimed, start = list[Path](), threading.Barrier(6)

    def claim() -> None:
        start.wait()
        claimed.append(claim_folder(tmp_path / "run"))

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name for path in claimed} == {"run", *(f"run-{n}" for n in range(2, 7))}


@pytest.mark.nightly
def test_two_servers_that_start_in_the_same_second_record_to_different_folders(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", SERVER_PROCESS, str(tmp_path / "run")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, **pipes) as first,
        subprocess.Popen(command, **pipes) as second,
    ):
        both = (first, second)
        assert [one.stdout.readline() for one in both] == ["ready\n"] * 2
        for one in both:
            one.stdin.write("go\n")
            one.stdin.flush()
        folders = {one.stdout.readline().strip() for one in both}
    assert folders == {str(tmp_path / "run"), str(tmp_path / "run-2")}
    for folder in folders:
        assert len(open_transcript(Path(folder)).messages) == 1


@pytest.mark.parametrize("taken", ["empty", "linked"])
def test_a_folder_whose_transcript_has_no_manifest_yet_is_taken(
    tmp_path: Path, taken: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    transcript = tmp_path / "run" / "transcript"
    transcript.mkdir() if taken == "empty" else transcript.symlink_to(tmp_path / "elsewhere")
    writer = AsyncWriter(tmp_path / "run", RunInfo("a framework 1.0"))
    write_round(writer)
    writer.close()
    assert writer.folder == tmp_path / "run-2"
    assert list(transcript.iterdir()) == []


@pytest.mark.parametrize(
    ("note", "mend"),
    [
        (PurgeNote(kind="recording", purged_on="2026-11-27", is_complete=False,
                   has_results=False, removed=()).model_dump_json(), "run `overheard purge`"),
        ("{", "restore it from a copy"),
    ],
    ids=["interrupted", "damaged"],
)  # fmt: skip
@pytest.mark.parametrize("is_resumed", [False, True])
def test_nothing_is_recorded_to_a_folder_whose_purge_is_not_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, note: str, mend: str, is_resumed: bool
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "purged.json").write_text(note)
    writer = AsyncWriter(folder, RunInfo("a framework 1.0"), is_resumed=is_resumed)
    write_round(writer)
    writer.close()
    # A run that goes on elsewhere would lack its first messages.
    assert (writer.stopped is not None) == is_resumed
    assert not (folder / "transcript").exists()
    assert is_resumed or len(open_transcript(tmp_path / "run-2").messages) == 2
    assert mend in caplog.text


def test_a_continued_recording_is_refused_while_another_process_writes_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with lock_folder(tmp_path / "run"):
        writer = AsyncWriter(tmp_path / "run", RunInfo("a framework 1.0"), is_resumed=True)
        write_round(writer)
        writer.close()
    assert "another process works here" in str(writer.stopped)
    assert "the run continues" in caplog.text


def test_a_recording_is_for_the_user_alone_or_for_the_auditors_group(tmp_path: Path) -> None:
    # Root may give to any group.
    group = os.getgid() or 4321
    modes = {}
    for name, given in (("mine", None), ("ours", group)):
        writer = AsyncWriter(tmp_path / name, RunInfo("a framework 1.0"), group=given)
        write_round(writer)
        writer.write_extra_file("node_names.json", "{}")
        writer.close()
        assert writer.stopped is None
        paths = [tmp_path / name, *(tmp_path / name).rglob("*")]
        modes[name] = {
            (path.is_dir(), stat.S_IMODE(path.stat().st_mode), path.stat().st_gid == group)
            for path in paths
        }
    is_mine = group == os.getgid()
    assert modes["mine"] == {(True, 0o700, is_mine), (False, 0o600, is_mine)}
    assert modes["ours"] == {(True, 0o2750, True), (False, 0o640, True)}


def test_an_unknown_group_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no group 'no such group'"):
        AsyncWriter(tmp_path, RunInfo("a framework 1.0"), group="no such group")
