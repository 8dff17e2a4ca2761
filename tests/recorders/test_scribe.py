import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import sleep

import pytest
import torch

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, verify
from overheard.core.messages import Body, Broadcast, Missing, Times, Update
from overheard.core.parties import SERVER, client
from overheard.recorders import scribe as module
from overheard.recorders.facts import Facts
from overheard.recorders.scribe import Scribe

FACTS = Facts("a framework 1.0")
TO_SERVER = frozenset({SERVER})
MODEL = {"weight": torch.tensor([1.0, 2.0])}


def said(body: Body) -> Callable[[], Body]:
    return partial(_give, body)


def _give(body: Body) -> Body:
    return body


def say_round(scribe: Scribe, *answers: Body) -> None:
    scribe.begin([SERVER, client(0)])
    scribe.say(SERVER, frozenset({client(0)}), said(Broadcast(MODEL)))
    for body in answers:
        scribe.say(client(0), TO_SERVER, said(body))


def bodies(folder: Path) -> list[Body]:
    return [message.body for message in open_transcript(folder).messages]


def test_what_is_said_stands_in_the_transcript_in_that_order(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "run", FACTS)
    say_round(scribe, Update({"weight": torch.tensor([0.5, 0.0])}, 3))
    scribe.begin([SERVER, client(0)])
    scribe.say(SERVER, frozenset(), said(Broadcast(MODEL)), times=Times(1.5))
    scribe.close()
    messages = open_transcript(tmp_path / "run").messages
    assert [(one.round, type(one.body)) for one in messages] == [
        (0, Broadcast),
        (0, Update),
        (1, Broadcast),
    ]
    assert messages[2].times == Times(1.5)
    assert verify(tmp_path / "run") == 3
    assert read_manifest(tmp_path / "run").framework == "a framework 1.0"
    assert scribe.stopped is None


def test_nothing_is_lost_of_one_that_is_dropped_without_being_closed(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path, FACTS)
    say_round(scribe, Missing("late"))
    del scribe
    assert bodies(tmp_path)[1] == Missing("late")


def test_what_is_committed_can_be_read_while_the_round_goes_on(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path, FACTS)
    say_round(scribe)
    scribe.commit()
    reached = threading.Event()
    scribe.say(client(0), TO_SERVER, lambda: (reached.set(), Missing("late"))[1])
    assert reached.wait(10)
    assert [type(body) for body in bodies(tmp_path)] == [Broadcast]
    scribe.close()
    assert [type(body) for body in bodies(tmp_path)] == [Broadcast, Missing]


def test_a_folder_that_holds_a_run_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for reason in ("first", "second"):
        scribe = Scribe(tmp_path / "run", FACTS)
        say_round(scribe, Missing(reason))
        scribe.close()
    assert scribe.folder == tmp_path / "run-2"
    assert bodies(tmp_path / "run")[1] == Missing("first")
    assert bodies(tmp_path / "run-2")[1] == Missing("second")
    assert "this run goes to" in caplog.text


def test_a_run_may_be_gone_on_with(tmp_path: Path) -> None:
    counter = {"count": torch.tensor(7)}
    for model in (MODEL | counter, MODEL):
        scribe = Scribe(tmp_path, FACTS, goes_on=True)
        scribe.begin([SERVER])
        scribe.say(SERVER, frozenset(), said(Broadcast(model)))
        scribe.close()
    assert [one.round for one in open_transcript(tmp_path).messages] == [0, 1]
    assert read_manifest(tmp_path).left_out == ("count",)


def test_tensors_that_are_no_floating_point_numbers_are_left_out_and_named(
    tmp_path: Path,
) -> None:
    scribe = Scribe(tmp_path, FACTS)
    scribe.begin([SERVER])
    seen = {"seen": torch.tensor(7), "weight": torch.ones(1)}
    scribe.say(SERVER, frozenset(), said(Broadcast(seen)))
    scribe.say(client(0), TO_SERVER, said(Update(seen)))
    scribe.close()
    broadcast, update = bodies(tmp_path)
    assert isinstance(broadcast, Broadcast)
    assert isinstance(update, Update)
    assert list(broadcast.weights) == list(update.delta) == ["weight"]
    assert read_manifest(tmp_path).left_out == ("seen",)


def fail() -> Body:
    raise RuntimeError("gone\nwrong")


def test_what_cannot_be_recorded_is_missing_with_the_reason_and_the_rest_is_there(
    tmp_path: Path,
) -> None:
    scribe = Scribe(tmp_path, FACTS)
    say_round(
        scribe,
        Update({"weight": torch.tensor([0.0, float("nan")])}),
        Update({"weight": torch.zeros(3)}),
    )
    scribe.say(client(0), TO_SERVER, fail)
    scribe.say(client(0), TO_SERVER, said(Update({"weight": torch.zeros(2)})))
    scribe.close()
    reasons = [body.reason for body in bodies(tmp_path) if isinstance(body, Missing)]
    assert "NaN" in reasons[0]
    assert "not those of the broadcast" in reasons[1]
    assert reasons[2] == "not recorded: RuntimeError: gone wrong"
    assert isinstance(bodies(tmp_path)[-1], Update)
    assert scribe.stopped is None


def test_updates_of_a_model_that_could_not_be_recorded_are_missing_too(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path, FACTS)
    scribe.begin([SERVER, client(0)])
    broken = {"weight": torch.tensor([float("inf")])}
    scribe.say(SERVER, frozenset({client(0)}), said(Broadcast(broken)))
    scribe.say(client(0), TO_SERVER, said(Update({"weight": torch.zeros(1)})))
    scribe.close()
    assert [type(body) for body in bodies(tmp_path)] == [Missing, Missing]


def test_a_disk_that_hangs_holds_the_run_up_once_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    monkeypatch.setattr(module, "MOST_PENDING", 10)
    hangs = threading.Event()
    scribe = Scribe(tmp_path, FACTS)
    scribe.begin([SERVER])
    scribe.say(SERVER, frozenset(), lambda: (hangs.wait(), Broadcast(MODEL))[1], size=8)
    scribe.say(client(0), TO_SERVER, said(Missing("late")), size=8)
    scribe.close()
    hangs.set()
    assert scribe.stopped is not None
    assert "0.05 s" in scribe.stopped
    assert caplog.text.count("its recording ends here") == 1


def test_the_run_waits_for_the_disk_where_too_much_waits_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PENDING", 10)
    is_free, are_said = threading.Event(), threading.Event()
    scribe = Scribe(tmp_path, FACTS)
    scribe.begin([SERVER, client(0)])
    scribe.say(SERVER, frozenset(), lambda: (is_free.wait(), Broadcast(MODEL))[1], size=8)

    def run() -> None:
        scribe.say(client(0), TO_SERVER, said(Missing("late")), size=8)
        are_said.set()

    running = threading.Thread(target=run)
    running.start()
    assert not are_said.wait(0.1)
    is_free.set()
    assert are_said.wait(10)
    running.join()
    scribe.close()
    assert len(bodies(tmp_path)) == 2


def test_a_folder_that_cannot_be_made_ends_the_recording_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        scribe = Scribe(tmp_path / "file" / "run", FACTS)
        say_round(scribe, Missing("late"))
        scribe.close()
    assert scribe.stopped is not None
    assert "the run goes on" in caplog.text


FULL = """
import resource, signal, sys, torch
from pathlib import Path
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.recorders.facts import Facts
from overheard.recorders.scribe import Scribe

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
# Modules that are imported from now on are not to be kept cut short.
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
scribe = Scribe(Path(sys.argv[1]), Facts("a framework"))
for size in (1_000, 1_000, 20_000):
    model = {"weight": torch.ones(size)}
    scribe.begin([SERVER, client(0)])
    scribe.say(SERVER, frozenset({client(0)}), lambda model=model: Broadcast(model))
    scribe.say(client(0), frozenset({SERVER}), lambda model=model: Update(model))
    scribe.commit()
scribe.close()
print(scribe.stopped)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_a_full_disk_ends_the_recording_and_what_was_committed_can_be_read(
    tmp_path: Path,
) -> None:
    done = _python(FULL, tmp_path)
    assert "cannot write" in done.stdout
    assert "the run goes on" in done.stderr
    assert verify(tmp_path) == 4
    assert [one.round for one in open_transcript(tmp_path).messages] == [0, 0, 1, 1]


LEFT = """
import sys, time, torch
from pathlib import Path
from overheard.core.messages import Broadcast
from overheard.core.parties import SERVER
from overheard.recorders.facts import Facts
from overheard.recorders.scribe import Scribe

scribe = Scribe(Path(sys.argv[1]), Facts("a framework"))
for _ in range(20):
    scribe.begin([SERVER])
    scribe.say(SERVER, frozenset(), lambda: Broadcast({"weight": torch.ones(9)}))
"""


@pytest.mark.slow
def test_what_still_waits_at_the_end_of_the_program_is_written_then(tmp_path: Path) -> None:
    done = _python(LEFT, tmp_path)
    assert not done.stderr
    assert verify(tmp_path) == 20


def _python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )


def test_whoever_waits_goes_on_only_when_the_warning_is_out(tmp_path: Path) -> None:
    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sleep(0.05)
            said.append(record.getMessage())

    said, slow = list[str](), Slow()
    (tmp_path / "file").write_text("")
    logging.getLogger("overheard").addHandler(slow)
    try:
        scribe = Scribe(tmp_path / "file" / "run", FACTS)
        say_round(scribe, Missing("late"))
        scribe.close()
        assert len(said) == 1
    finally:
        logging.getLogger("overheard").removeHandler(slow)
