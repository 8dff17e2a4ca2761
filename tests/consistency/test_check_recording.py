"""The check of stored recordings."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.archive.manifest import Manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import Recorder
from overheard.consistency import check as module
from overheard.consistency.check import check_recording
from overheard.consistency.statement import StatedStep
from overheard.core.errors import TranscriptError
from overheard.core.messages import Message
from overheard.core.parties import client
from tests.consistency.runs import Setting, check, minus, record, simulate


def store(folder: Path, rounds: list[list[Message]]) -> Path:
    parties = ("server", *map(client, range(4)))
    recorder = Recorder(folder, Manifest(None, "", None, (), parties, None))
    for messages in rounds:
        with recorder.open_round() as open_round:
            for message in messages:
                open_round.record(message)
    return folder


def test_a_stored_recording_proves_what_its_messages_prove(tmp_path: Path) -> None:
    rounds = record(simulate())
    found = check_recording(store(tmp_path, rounds), StatedStep())
    expected = check(rounds)
    assert (found.outcome, found.reason) == (expected.outcome, expected.reason)
    assert found.stated is not None
    assert len(found.stated.residuals) == 5
    assert max(found.stated.residuals.values()) < 1e-5


def test_a_recording_is_read_once_until_its_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = store(tmp_path, record(simulate())), list[int]()

    def count(transcript: Path, number: int) -> tuple[Message, ...]:
        read.append(number)
        return read_round(transcript, number)

    monkeypatch.setattr(module, "read_round", count)
    first = check_recording(folder, StatedStep())
    assert check_recording(folder / "transcript", StatedStep()) is first
    assert read == [0, 1, 2, 3, 4, 5]
    changed = folder / "transcript" / "rounds" / "r0001" / "messages.jsonl"
    os.utime(changed, (1e9, 1e9))
    check_recording(folder, StatedStep())
    assert len(read) == 12


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = store(tmp_path, record(simulate()))
    path = next(folder.glob("transcript/rounds/r0002/*update*"))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(TranscriptError):
        check_recording(folder, StatedStep())


def test_nothing_is_written_beside_a_recording(tmp_path: Path) -> None:
    folder = store(tmp_path, record(simulate()))
    before = sorted(folder.rglob("*"))
    check_recording(folder, StatedStep())
    assert sorted(folder.rglob("*")) == before


@settings(max_examples=12)
@given(
    rate=st.floats(0.05, 3.0),
    momentum=st.floats(0.05, 0.95),
    absent=st.integers(0, 3),
    is_wrong=st.booleans(),
)
def test_rate_and_momentum_are_found_under_either_reading(
    rate: float, momentum: float, absent: int, is_wrong: bool
) -> None:
    setting = Setting(
        FedAvgM(rate=rate, momentum=momentum),
        absent=lambda number, party: party == client(absent) and number == 2,
        shapes={"w": (9, 7), "b": (9,)},
    )
    proof = check(
        record(
            simulate(setting),
            lambda run, number, local, start: (
                minus(minus(local, start), start) if is_wrong else minus(local, start)
            ),
        )
    )
    assert proof.outcome == ("contradicts" if is_wrong else "follows")
    assert proof.best is not None
    assert proof.best.step.reading == ("differences" if is_wrong else "weights")
    assert proof.best.step.fitted["rate"] == pytest.approx(rate, 1e-3)
    assert proof.best.step.fitted["momentum"] == pytest.approx(momentum, abs=1e-3)


@settings(max_examples=8)
@given(st.integers(0, 2**16))
def test_random_replies_never_follow_and_never_contradict(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    run = simulate(Setting(rounds=4, shapes={"w": (9, 7)}))
    proof = check(
        record(
            run,
            lambda run, number, local, start: {
                name: 0.1 * torch.randn(one.shape, generator=generator)
                for name, one in start.items()
            },
        )
    )
    assert proof.outcome == "cannot tell"
    assert not proof.allows_no_leak("updates")
