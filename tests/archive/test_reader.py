import os
import shutil
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import count_committed_rounds, messages_path
from overheard.archive.manifest import is_complete
from overheard.archive.reader import open_transcript, read_round, verify_transcript
from overheard.archive.weights import StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast, Message, MissingReply, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.disk.digests import TRUST_VARIABLE


def test_messages_are_read_in_the_order_sent(
    folder: Path, messages: tuple[Message, ...]
) -> None:
    found = open_transcript(folder).messages
    assert [(m.round, m.sender, m.readers, type(m.body)) for m in found] == [
        (m.round, m.sender, m.readers, type(m.body)) for m in messages
    ]
    first, missing, update, last = (message.body for message in found)
    assert isinstance(first, Broadcast)
    assert list(first.weights) == ["weight", "bias"]
    assert missing == MissingReply("late")
    assert isinstance(update, Update)
    assert (update.examples, update.metrics) == (5, {"loss": 0.75})
    assert torch.equal(update.delta["weight"], torch.tensor([[0.25, -4.0]]))
    assert isinstance(last, Broadcast)
    assert torch.equal(last.weights["bias"], torch.tensor([8.5]))


def test_a_stored_transcript_can_be_observed(folder: Path) -> None:
    view = open_transcript(folder).seen_by(SERVER)
    # A single update is the mean of all.
    assert view.updates(COHORT)[0].delta["bias"].tolist() == [8.0]
    assert open_transcript(folder).seen_by(client(1)).senders() == ()


def test_a_single_round_can_be_read(folder: Path) -> None:
    assert [message.sender for message in read_round(folder, 1)] == [SERVER]


def test_a_transcript_is_complete_only_with_its_closing_round(folder: Path) -> None:
    assert count_committed_rounds(folder) == 2
    assert is_complete(folder)
    messages_path(folder / "transcript", 1).unlink()
    assert count_committed_rounds(folder) == 1
    assert not is_complete(folder)
    assert {message.round for message in open_transcript(folder).messages} == {0}


def test_a_gap_among_the_rounds_is_refused(folder: Path) -> None:
    messages_path(folder / "transcript", 0).unlink()
    with pytest.raises(TranscriptError, match="has no round 0 but later ones"):
        open_transcript(folder)


def test_a_transcript_can_be_read_without_its_run(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "transcript", tmp_path / "handed over")
    assert len(open_transcript(tmp_path / "handed over").messages) == 4


def test_a_missing_transcript_is_reported(tmp_path: Path) -> None:
    assert count_committed_rounds(tmp_path) == 0
    with pytest.raises(TranscriptError, match="holds no transcript"):
        open_transcript(tmp_path)


def test_a_truncated_weights_file_is_refused_on_opening(
    folder: Path,
) -> None:
    file = next(iter(folder.rglob("*update*")))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(TranscriptError, match="cut short or changed"):
        open_transcript(folder)


def test_a_weights_file_that_links_outside_is_refused(folder: Path, tmp_path: Path) -> None:
    file = next(iter(folder.rglob("*update*")))
    shutil.move(file, tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TranscriptError, match="links to outside of its folder"):
        open_transcript(folder)


def test_a_damaged_line_is_reported_with_its_number(folder: Path) -> None:
    file = messages_path(folder / "transcript", 0)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(TranscriptError, match=r"messages\.jsonl line 3: is damaged"):
        open_transcript(folder)


def flip_last_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def read_all(folder: Path) -> None:
    for message in open_transcript(folder).messages:
        body = message.body
        if isinstance(body, Broadcast):
            body.weights["bias"]
        if isinstance(body, Update):
            assert isinstance(body.delta, StoredWeights)
            body.delta.read_blocks({"bias": [(0, 1)]})


@pytest.mark.parametrize("number", range(3))
def test_a_flipped_bit_is_detected_when_any_tensor_of_the_file_is_read(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_all(folder)
    file = sorted(folder.rglob("*.safetensors"))[number]
    flip_last_bit(file)  # of another tensor than the one that is read
    with pytest.raises(TranscriptError, match=f"{file.name} was altered .*--trust-store"):
        read_all(folder)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    read_all(folder)


def test_a_file_with_another_time_but_the_same_content_is_read(folder: Path) -> None:
    read_all(folder)
    for file in folder.rglob("*.safetensors"):
        os.utime(file, (0, 0))
        shutil.copy(file, file.with_suffix(".copy"))
        file.with_suffix(".copy").replace(file)
    read_all(folder)


def test_verification_counts_files_and_detects_a_flipped_bit(folder: Path) -> None:
    # A broadcast, an update, a closing broadcast.
    assert verify_transcript(folder) == 3
    file = next(iter(folder.rglob("*update*")))
    flip_last_bit(file)
    open_transcript(folder)
    with pytest.raises(TranscriptError, match="was altered after it was written"):
        verify_transcript(folder)
