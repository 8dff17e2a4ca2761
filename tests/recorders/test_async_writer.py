import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from overheard.archive.layout import end_path
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.archive.run_end import has_ended
from overheard.core.messages import (
    Broadcast,
    Evaluation,
    MessageBody,
    MissingReply,
    Timestamps,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import SERVER, client
from overheard.recorders import async_writer as module
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo

FACTS = RunInfo("a framework 1.0")
TO_SERVER = frozenset({SERVER})
MODEL = {"weight": torch.tensor([1.0, 2.0])}


def provider(body: MessageBody) -> Callable[[], MessageBody]:
    return partial(_give, body)


def _give(body: MessageBody) -> MessageBody:
    return body


def write_round(writer: AsyncWriter, *replies: MessageBody) -> None:
    writer.begin_round([SERVER, client(0)])
    writer.write(SERVER, frozenset({client(0)}), provider(Broadcast(MODEL)))
    for body in replies:
        writer.write(client(0), TO_SERVER, provider(body))


def begin_slowly(folder: Path, wait: Callable[[], object]) -> AsyncWriter:
    """Begin a recording whose first message is written only after a wait."""
    writer = AsyncWriter(folder, FACTS)
    writer.begin_round([SERVER, client(0)])
    writer.write(SERVER, frozenset(), lambda: (wait(), Broadcast(MODEL))[1], size=8)
    return writer


def bodies(folder: Path) -> list[MessageBody]:
    return [message.body for message in open_transcript(folder).messages]


def test_writes_messages_in_order(tmp_path: Path) -> None:
    writer = AsyncWriter(tmp_path / "run", FACTS)
    write_round(writer, Update({"weight": torch.tensor([0.5, 0.0])}, 3))
    writer.begin_round([SERVER, client(0)])
    writer.write(SERVER, frozenset(), provider(Broadcast(MODEL)), times=Timestamps(1.5))
    writer.close()
    messages = open_transcript(tmp_path / "run").messages
    assert [(one.round, type(one.body)) for one in messages] == [
        (0, Broadcast),
        (0, Update),
        (1, Broadcast),
    ]
    assert messages[2].times == Timestamps(1.5)
    assert verify_transcript(tmp_path / "run") == 3
    assert read_manifest(tmp_path / "run").framework == "a framework 1.0"
    assert writer.stopped is None


def test_writes_pending_messages_if_dropped_without_close(tmp_path: Path) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    write_round(writer, MissingReply("late"))
    del writer
    assert bodies(tmp_path)[1] == MissingReply("late")


def test_committed_messages_are_readable_before_the_round_ends(tmp_path: Path) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    write_round(writer)
    writer.commit()
    reached = threading.Event()
    writer.write(client(0), TO_SERVER, lambda: (reached.set(), MissingReply("late"))[1])
    assert reached.wait(10)
    assert [type(body) for body in bodies(tmp_path)] == [Broadcast]
    writer.close()
    assert [type(body) for body in bodies(tmp_path)] == [Broadcast, MissingReply]


def test_does_not_overwrite_an_existing_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for reason in ("first", "second"):
        writer = AsyncWriter(tmp_path / "run", FACTS)
        write_round(writer, MissingReply(reason))
        writer.close()
    assert writer.folder == tmp_path / "run-2"
    assert bodies(tmp_path / "run")[1] == MissingReply("first")
    assert bodies(tmp_path / "run-2")[1] == MissingReply("second")
    assert "this run goes to" in caplog.text


def test_can_resume_a_run(tmp_path: Path) -> None:
    counter = {"count": torch.tensor(7)}
    for model in (MODEL | counter, MODEL):
        writer = AsyncWriter(tmp_path, FACTS, is_resumed=True)
        writer.begin_round([SERVER])
        writer.write(SERVER, frozenset(), provider(Broadcast(model)))
        writer.close()
    assert [one.round for one in open_transcript(tmp_path).messages] == [0, 1]
    assert read_manifest(tmp_path).left_out == ("count",)


def test_omits_and_names_tensors_that_are_not_floating_point(
    tmp_path: Path,
) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    writer.begin_round([SERVER])
    seen = {"seen": torch.tensor(7), "weight": torch.ones(1)}
    writer.write(SERVER, frozenset(), provider(Broadcast(seen)))
    writer.write(client(0), TO_SERVER, provider(Update(seen)))
    writer.close()
    broadcast, update = bodies(tmp_path)
    assert list(broadcast.weights) == list(update.delta) == ["weight"]
    assert read_manifest(tmp_path).left_out == ("seen",)


def fail() -> MessageBody:
    raise RuntimeError("gone\nwrong")


def leave() -> MessageBody:
    raise SystemExit(3)


def test_records_invalid_messages_as_unstored_with_the_reason(
    tmp_path: Path,
) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    write_round(
        writer,
        Update({"weight": torch.tensor([0.0, float("nan")])}),
        Update({"weight": torch.zeros(3)}),
    )
    writer.write(client(0), TO_SERVER, fail)
    writer.write(client(0), TO_SERVER, leave)
    writer.write(client(0), TO_SERVER, provider(Update({"weight": torch.zeros(2)})))
    writer.close()
    unstored = [body for body in bodies(tmp_path) if isinstance(body, UnstoredMessage)]
    reasons = [body.reason for body in unstored]
    assert [body.kind for body in unstored] == ["weights", "weights", "other", "other"]
    assert "NaN" in reasons[0]
    assert "not those of the broadcast" in reasons[1]
    assert reasons[2:] == ["RuntimeError: gone wrong", "SystemExit: 3"]
    assert isinstance(bodies(tmp_path)[-1], Update)
    assert writer.stopped is None


ZEROS = {"weight": torch.zeros(2)}


@pytest.mark.parametrize(
    "hostile",
    [
        Update(ZEROS, 2**62),
        Update(ZEROS, -1),
        Update(ZEROS, 3, {"loss": 10**400}),
        Update(ZEROS, 3, {"loss": "low"}),  # type: ignore[dict-item]
        Update(ZEROS, 3, {f"metric {number}": 0.1 for number in range(300_000)}),
        Update(ZEROS, 3, dict.fromkeys(["\x1b]0;\ud800" * 9000], float("nan"))),
        Update({"we\ud800ight": torch.zeros(2)}),
        Update({"weight": torch.zeros(2, device="meta")}),
        Update({"weight": torch.zeros(2).to_sparse()}),
        Evaluation({"loss": 0.5}, 2**53),
        MissingReply("because \ud800"),
    ],
)
def test_no_content_of_one_client_ends_the_recording_of_the_others(
    tmp_path: Path, hostile: MessageBody
) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    for _ in range(2):
        write_round(writer, hostile, Update(ZEROS, 3))
    writer.close()
    assert writer.stopped is None
    assert verify_transcript(tmp_path) == 4
    found = bodies(tmp_path)
    assert [type(one) for one in found] == [Broadcast, UnstoredMessage, Update] * 2
    assert isinstance(found[1], UnstoredMessage)
    assert found[1].reason.isprintable()
    # The weights of the hostile reply take no room.
    assert len(list(tmp_path.rglob("*.safetensors"))) == 4


def test_updates_of_an_unrecorded_model_are_unstored(tmp_path: Path) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    writer.begin_round([SERVER, client(0)])
    broken = {"weight": torch.tensor([float("inf")])}
    writer.write(SERVER, frozenset({client(0)}), provider(Broadcast(broken)))
    writer.write(client(0), TO_SERVER, provider(Update({"weight": torch.zeros(1)})))
    writer.close()
    assert [type(body) for body in bodies(tmp_path)] == [UnstoredMessage, UnstoredMessage]


@pytest.mark.slow
def test_a_hanging_disk_delays_the_run_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("MAX_WAIT", "MAX_END_WAIT", "MAX_LIST_WAIT"):
        monkeypatch.setattr(module, name, 0.05)
    monkeypatch.setattr(module, "MAX_PENDING_BYTES", 10)
    hangs = threading.Event()
    writer = begin_slowly(tmp_path, hangs.wait)
    begin = monotonic()
    for _ in range(1000):
        writer.write(client(0), TO_SERVER, provider(MissingReply("late")), size=8)
    writer.close()
    assert monotonic() - begin < 2.0
    hangs.set()
    assert "0.1 s" in writer.stopped
    assert caplog.text.count("the recording stops here") == 1


def test_what_a_slow_disk_gives_up_is_listed_and_the_recording_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_WAIT", 0.02)
    monkeypatch.setattr(module, "MAX_PENDING_BYTES", 10)
    hangs = threading.Event()
    writer = begin_slowly(tmp_path, hangs.wait)
    for number in range(3):
        writer.write(client(number), TO_SERVER, provider(Update(MODEL)), size=8)
    hangs.set()
    writer.close()
    assert writer.stopped is None
    given_up = UnstoredMessage("other", "the disk was too slow")
    assert bodies(tmp_path)[1:] == [given_up] * 3
    assert caplog.text.count("is too slow") == 1


def test_what_is_left_when_the_run_ends_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_END_WAIT", 0.05)
    writer = begin_slowly(tmp_path, lambda: sleep(0.2))
    writer.write(client(0), TO_SERVER, provider(Update(MODEL)), size=8)
    writer.close()
    assert writer.stopped is None
    assert bodies(tmp_path)[1] == UnstoredMessage("other", "the disk was too slow")


def test_too_many_waiting_messages_stop_the_recording_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PENDING_CALLS", 3)
    hangs = threading.Event()
    writer = begin_slowly(tmp_path, hangs.wait)
    for _ in range(5):
        writer.write(client(0), TO_SERVER, provider(MissingReply("late")))
    hangs.set()
    writer.close()
    assert "messages wait for" in writer.stopped


def test_the_run_waits_if_too_much_is_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PENDING_BYTES", 10)
    is_free, is_written = threading.Event(), threading.Event()
    writer = begin_slowly(tmp_path, is_free.wait)

    def run() -> None:
        writer.write(client(0), TO_SERVER, provider(MissingReply("late")), size=8)
        is_written.set()

    running = threading.Thread(target=run)
    running.start()
    assert not is_written.wait(0.1)
    is_free.set()
    assert is_written.wait(10)
    running.join()
    writer.close()
    assert len(bodies(tmp_path)) == 2


def test_an_unwritable_folder_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        writer = AsyncWriter(tmp_path / "file" / "run", FACTS)
        write_round(writer, MissingReply("late"))
        writer.close()
    assert writer.stopped is not None
    assert "the run continues" in caplog.text


FULL_DISK = """
import resource, signal, sys, torch
from pathlib import Path
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.recorders.run_info import RunInfo
from overheard.recorders.async_writer import AsyncWriter

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
# Bytecode of later imports would be truncated.
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
writer = AsyncWriter(Path(sys.argv[1]), RunInfo("a framework"))
for size in (1_000, 1_000, 20_000):
    model = {"weight": torch.ones(size)}
    writer.begin_round([SERVER, client(0)])
    writer.write(SERVER, frozenset({client(0)}), lambda model=model: Broadcast(model))
    writer.write(client(0), frozenset({SERVER}), lambda model=model: Update(model))
    writer.commit()
writer.close()
print(writer.stopped)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_committed_rounds_are_readable_after_a_full_disk(
    tmp_path: Path,
) -> None:
    done = _python(FULL_DISK, tmp_path)
    assert "cannot write" in done.stdout
    assert "the run continues" in done.stderr
    assert verify_transcript(tmp_path) == 4
    assert [one.round for one in open_transcript(tmp_path).messages] == [0, 0, 1, 1]


PENDING_AT_EXIT = """
import sys, time, torch
from pathlib import Path
from overheard.core.messages import Broadcast
from overheard.core.parties import SERVER
from overheard.recorders.run_info import RunInfo
from overheard.recorders.async_writer import AsyncWriter

writer = AsyncWriter(Path(sys.argv[1]), RunInfo("a framework"))
for _ in range(20):
    writer.begin_round([SERVER])
    writer.write(SERVER, frozenset(), lambda: Broadcast({"weight": torch.ones(9)}))
"""


@pytest.mark.slow
def test_writes_pending_messages_when_the_program_ends(tmp_path: Path) -> None:
    done = _python(PENDING_AT_EXIT, tmp_path)
    assert not done.stderr
    assert verify_transcript(tmp_path) == 20


def _python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )


def test_logs_the_warning_before_waiting_threads_continue(tmp_path: Path) -> None:
    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sleep(0.05)
            warnings.append(record.getMessage())

    warnings, slow = list[str](), Slow()
    (tmp_path / "file").write_text("")
    logging.getLogger("overheard").addHandler(slow)
    try:
        writer = AsyncWriter(tmp_path / "file" / "run", FACTS)
        write_round(writer, MissingReply("late"))
        writer.close()
        assert len(warnings) == 1
    finally:
        logging.getLogger("overheard").removeHandler(slow)


def test_says_in_the_transcript_that_the_run_has_ended(tmp_path: Path) -> None:
    writer = AsyncWriter(tmp_path, FACTS)
    write_round(writer, MissingReply("late"))
    writer.commit()
    is_committed = threading.Event()
    writer.write(client(1), TO_SERVER, lambda: (is_committed.set(), MissingReply("late"))[1])
    assert is_committed.wait(10)
    assert not has_ended(tmp_path)
    writer.close()
    assert has_ended(tmp_path)
    # A run that is opened again goes on.
    again = AsyncWriter(tmp_path / "again", FACTS, is_resumed=True, ends_run=False)
    write_round(again, MissingReply("late"))
    again.close()
    assert not has_ended(tmp_path / "again")


def test_the_log_and_the_end_mark_tell_the_full_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO, "app"):
        writer = AsyncWriter(Path("recording"), FACTS, log=logging.getLogger("app"))
        write_round(writer, MissingReply("late"))
        writer.close()
    folder = str(tmp_path / "recording")
    assert caplog.messages == [
        f"overheard: this run is recorded to {folder}",
        f"overheard: the recording ends after 1 round in {folder}",
    ]
    assert json.loads(end_path(tmp_path / "recording" / "transcript").read_text()) == {
        "rounds": 1,
        "folder": folder,
    }
