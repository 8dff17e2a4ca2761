import shutil
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import count_committed_rounds, messages_path
from overheard.archive.manifest import is_complete
from overheard.archive.reader import open_transcript, read_round, verify_transcript
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast, Message, MissingReply, Update
from overheard.core.parties import COHORT, SERVER, client


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


def test_an_uncommitted_round_is_not_read(folder: Path) -> None:
    messages_path(folder / "transcript", 1).unlink()
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
    with pytest.raises(TranscriptError, match="links to outside of the transcript's folder"):
        open_transcript(folder)


def test_a_damaged_line_is_reported_with_its_number(folder: Path) -> None:
    file = messages_path(folder / "transcript", 0)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(TranscriptError, match=r"messages\.jsonl line 3: is damaged"):
        open_transcript(folder)


def test_verification_counts_files_and_detects_a_flipped_bit(folder: Path) -> None:
    # A broadcast, an update, a closing broadcast.
    assert verify_transcript(folder) == 3
    file = next(iter(folder.rglob("*update*")))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    open_transcript(folder)
    with pytest.raises(TranscriptError, match="was altered after it was written"):
        verify_transcript(folder)
