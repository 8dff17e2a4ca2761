import math
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.archive.layout import messages_path, round_folder
from overheard.archive.manifest import Manifest
from overheard.archive.reader import open_transcript
from overheard.archive.recorder import Recorder
from overheard.archive.weights import StoredWeights
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Timestamps,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import SERVER, Party, client
from overheard.disk.writing import partial_path

TO_SERVER = frozenset({SERVER})
START = {"w": torch.tensor([1.0, 2.0])}


def broadcast(number: int) -> Message:
    return Message(number, SERVER, frozenset({client(0)}), Broadcast(START))


def update(delta: torch.Tensor, **metadata: float) -> Message:
    return Message(0, client(0), TO_SERVER, Update({"w": delta}, 5, metadata))


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_messages_are_written_when_sent_and_count_when_the_round_closes(
    tmp_path: Path, manifest: Manifest
) -> None:
    recorder = Recorder(tmp_path, manifest)
    with recorder.open_round() as open_round:
        stored = open_round.record(broadcast(0))
        assert isinstance(stored.body, Broadcast)
        assert isinstance(stored.body.weights, StoredWeights)
        assert torch.equal(stored.body.weights["w"], START["w"])
        assert open_transcript(tmp_path).messages == ()
        assert recorder.committed_rounds() == 0
    assert recorder.committed_rounds() == 1
    assert len(open_transcript(tmp_path).messages) == 1


def test_a_reply_that_an_older_recorder_did_not_store_is_not_missing(
    tmp_path: Path, manifest: Manifest
) -> None:
    with Recorder(tmp_path, manifest).open_round() as open_round:
        old = MissingReply("not recorded: 'w' contains NaN")
        open_round.record(Message(0, client(0), TO_SERVER, old))
    body = open_transcript(tmp_path).messages[0].body
    assert body == UnstoredMessage("other", "'w' contains NaN")


def test_an_interrupted_round_is_dropped_and_recorded_again(
    tmp_path: Path, manifest: Manifest
) -> None:
    recorder = Recorder(tmp_path, manifest)

    def break_off() -> None:
        with recorder.open_round() as open_round:
            open_round.record(broadcast(0))
            open_round.record(update(torch.ones(2)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert recorder.committed_rounds() == 0
    again = Recorder(tmp_path, manifest)
    with again.open_round() as open_round:
        open_round.record(broadcast(0))
    names = sorted(path.name for path in round_folder(tmp_path / "transcript", 0).iterdir())
    assert names == ["0000-server-broadcast.safetensors", "messages.jsonl"]


def test_a_round_without_a_message_is_not_committed(tmp_path: Path, manifest: Manifest) -> None:
    with Recorder(tmp_path, manifest).open_round():
        pass
    assert Recorder(tmp_path, manifest).committed_rounds() == 0
    assert open_transcript(tmp_path).messages == ()


def test_parties_with_similar_names_have_separate_files(
    tmp_path: Path, manifest: Manifest
) -> None:
    senders = [Party("client/3"), Party("client-3"), Party("Client/3")]
    with Recorder(tmp_path, manifest).open_round() as open_round:
        open_round.record(broadcast(0))
        for number, sender in enumerate(senders):
            delta = Update({"w": torch.full((2,), float(number))})
            open_round.record(Message(0, sender, TO_SERVER, delta))
    view = open_transcript(tmp_path).seen_by(SERVER)
    assert [view.updates(one)[0].delta["w"][0].item() for one in senders] == [0.0, 1.0, 2.0]


def test_another_run_in_the_folder_is_refused_with_differences_and_left_unchanged(
    folder: Path, manifest: Manifest
) -> None:
    before = snapshot(folder)
    with pytest.raises(OutputError) as caught:
        Recorder(folder, replace(manifest, seed=4, model="mlp"))
    assert "seed (stored 3, given 4)" in str(caught.value)
    assert "model (stored 'linear', given 'mlp')" in str(caught.value)
    assert "choose another folder" in str(caught.value)
    assert snapshot(folder) == before


def test_other_versions_can_open_a_complete_run_but_not_continue_one(
    folder: Path, manifest: Manifest
) -> None:
    newer = replace(manifest, torch="99.0")
    assert Recorder(folder, newer).committed_rounds() == 2
    messages_path(folder / "transcript", 1).unlink()
    with pytest.raises(OutputError, match=r"torch .stored '2.*given '99\.0'"):
        Recorder(folder, newer)


def test_other_files_are_no_run(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "transcript").mkdir()
    (tmp_path / "transcript" / "thesis.tex").write_text("dear")
    with pytest.raises(OutputError, match=r"has 'thesis\.tex' and no manifest"):
        Recorder(tmp_path, manifest)
    with pytest.raises(OutputError, match="there is a file where a folder is needed"):
        Recorder(tmp_path / "transcript" / "thesis.tex", manifest)


def test_a_partial_manifest_of_a_killed_run_is_replaced(
    tmp_path: Path, manifest: Manifest
) -> None:
    (tmp_path / "transcript").mkdir()
    partial_path(tmp_path / "transcript" / "manifest.json").write_text("{")
    Recorder(tmp_path, manifest)
    assert [path.name for path in (tmp_path / "transcript").iterdir()] == ["manifest.json"]


def test_whatever_a_killed_run_left_half_written_is_removed(
    folder: Path, manifest: Manifest
) -> None:
    before = snapshot(folder)
    transcript = folder / "transcript"
    for path in (
        transcript / "ended.json",
        folder / "truth.json",
        messages_path(transcript, 1),
        messages_path(transcript, 2),
    ):
        path.parent.mkdir(exist_ok=True)
        partial_path(path).write_text("{")
    assert len(open_transcript(folder).messages) == len(open_transcript(transcript).messages)
    with Recorder(folder, manifest).open_round():
        pass
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    "linked",
    ["runs", "runs/a", "runs/a/transcript", "runs/a/transcript/rounds", "rounds/r0000"],
)
def test_nothing_is_recorded_through_a_link(
    tmp_path: Path, folder: Path, manifest: Manifest, linked: str
) -> None:
    out = tmp_path / "out"
    transcript = out / "runs" / "a" / "transcript"
    link = transcript / linked if linked == "rounds/r0000" else out / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(folder)
    before = snapshot(folder)

    def record() -> None:
        recorder = Recorder(out / "runs" / "a", manifest, inside=out)
        with recorder.open_round() as open_round:
            open_round.record(broadcast(0))

    with pytest.raises(
        OutputError, match=rf"{linked} is a link.*remove the link|is no transcript"
    ):
        record()
    assert snapshot(folder) == before


def test_a_linked_recording_can_be_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "transcript").symlink_to(folder / "transcript")
    for linked in ("link", "other"):
        found = open_transcript(tmp_path / linked).messages
        assert len(found) == len(open_transcript(folder).messages)


def test_a_full_disk_stops_the_round_and_leaves_it_uncommitted(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    def fill_up() -> None:
        with Recorder(tmp_path, manifest).open_round() as open_round:
            open_round.record(broadcast(0))
            open_round.record(update(torch.ones(2)))
            monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OutputError, match="the disk is full"):
        fill_up()
    monkeypatch.undo()
    assert Recorder(tmp_path, manifest).committed_rounds() == 0
    assert not list(tmp_path.rglob("messages*"))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (broadcast(1), "a message of round 1 was recorded in round 0"),
        (update(torch.ones(3)), r"those of the broadcast: 'w' has shape \(3,\), not \(2,\)"),
        (update(torch.tensor([1.0, float("nan")])), "only finite weights"),
        (update(torch.ones(2), loss=float("nan")), "the metric 'loss' is nan"),
        (Message(0, Party("../x"), TO_SERVER, MissingReply("late")), "rename the party"),
        (
            Message(0, client(0), frozenset({Party("a b")}), MissingReply("late")),
            "rename the party",
        ),
    ],
)
def test_invalid_messages_are_not_written(
    tmp_path: Path, manifest: Manifest, message: Message, why: str
) -> None:
    with Recorder(tmp_path, manifest).open_round() as open_round:
        open_round.record(broadcast(0))
        with pytest.raises(ValueError, match=why):
            open_round.record(message)
    assert len(open_transcript(tmp_path).messages) == 1


def test_a_rejected_broadcast_leaves_the_round_with_the_earlier_one(
    tmp_path: Path, manifest: Manifest
) -> None:
    unreadable = Broadcast({"v": torch.ones(3)}, {"lr": "\ud800"})
    with Recorder(tmp_path, manifest).open_round() as open_round:
        open_round.record(broadcast(0))
        with pytest.raises(ValueError, match="surrogates"):
            open_round.record(Message(0, SERVER, TO_SERVER, unreadable))
        open_round.record(update(torch.ones(2)))
    sent = open_transcript(tmp_path).messages
    assert [type(one.body) for one in sent] == [Broadcast, Update]
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2


def test_a_round_stays_readable_however_much_is_sent(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", "66000")
    late = Message(0, client(1), TO_SERVER, MissingReply("late " * 20))
    with Recorder(tmp_path, manifest).open_round() as open_round:
        lines = [open_round.record(late) for _ in range(10)]
        with pytest.raises(ValueError, match="can be recorded: send fewer"):
            open_round.record(late)
    assert open_transcript(tmp_path).messages == tuple(lines)


def test_an_update_before_any_broadcast_is_not_written(
    tmp_path: Path, manifest: Manifest
) -> None:
    with (
        Recorder(tmp_path, manifest).open_round() as open_round,
        pytest.raises(ValueError, match="before any broadcast"),
    ):
        open_round.record(update(torch.ones(2)))
    assert open_transcript(tmp_path).messages == ()


NUMBERS = st.integers(-2, 9) | st.sampled_from((2**53, 10**400, True, 0.5, math.nan, math.inf))
TEXTS = st.text(max_size=4)  # lone surrogates too
METRICS = st.dictionaries(TEXTS, NUMBERS, max_size=2)
READERS = st.frozensets(st.sampled_from((SERVER, client(1), Party("../x"))), max_size=2)
TIMES = st.none() | st.floats(0, 2e9) | st.sampled_from((-1.0, math.nan, math.inf))
BODIES = st.one_of(
    st.builds(MissingReply, TEXTS),
    st.builds(Evaluation, METRICS, st.none() | NUMBERS, st.tuples(TEXTS)),
    st.builds(
        UnstoredMessage,
        st.sampled_from(("text", "masked")),
        TEXTS,
        st.none() | NUMBERS,
        METRICS,
        st.tuples(TEXTS),
    ),
    st.builds(
        Update,
        st.just(START),
        st.none() | NUMBERS,
        METRICS,
        texts=st.tuples(TEXTS),
        absent=st.sampled_from(((), ("w",))),
    ),
    st.builds(Aggregate, st.just(START), READERS, st.none() | NUMBERS),
)


@given(st.lists(st.tuples(BODIES, READERS, st.builds(Timestamps, TIMES, TIMES)), max_size=4))
def test_each_message_that_is_recorded_is_read_as_it_was_sent(
    sent: list[tuple[MessageBody, frozenset[Party], Timestamps]],
) -> None:
    recorded = list[Message]()
    with TemporaryDirectory() as folder:
        manifest = Manifest(None, "", None, (), (), None)
        with Recorder(Path(folder), manifest).open_round() as open_round:
            open_round.record(broadcast(0))
            for body, readers, times in sent:
                message = Message(0, client(0), readers, body, times)
                with suppress(ValueError, TranscriptError):
                    open_round.record(message)
                    recorded.append(message)
        _, *read = open_transcript(Path(folder)).messages
        assert list(map(as_stored, read)) == list(map(as_stored, recorded))


def as_stored(message: Message) -> Message:
    """Return a message with lists for tensors, which have no equality, and no NaN as time."""
    body, times = message.body, message.times
    if isinstance(body, Update | Aggregate):
        numbers = {name: body.delta[name].tolist() for name in body.delta}
        body = replace(body, delta=numbers)  # type: ignore[arg-type]
    assert times is not None
    known = (
        one if one is not None and math.isfinite(one) else None
        for one in (times.sent, times.received)
    )
    return replace(message, body=body, times=Timestamps(*known))
