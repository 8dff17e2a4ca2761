import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, Context, Message, Metadata, MetricRecord, RecordDict
from flwr.app.message.message import make_message
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod

from overheard.archive.layout import truth_path
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.core.messages import Broadcast, MissingReply
from overheard.core.messages import Message as TranscriptMessage
from overheard.core.parties import SERVER
from overheard.recorders.flower import recording_mod

NODE, RUN = 2**63 + 5, 77
ME = f"client/{NODE}"
CONTEXT = Context(RUN, NODE, {}, RecordDict(), {})


def message(kind: str, value: float, number: int, seen: np.ndarray | None = None) -> Message:
    arrays = {"w": np.array([value], np.float32)} | ({} if seen is None else {"seen": seen})
    content = RecordDict(
        {"arrays": ArrayRecord({name: Array(one) for name, one in arrays.items()})}
    )
    metadata = Metadata(RUN, str(number), 1, NODE, "", "", 1000.0, 60.0, kind)
    return make_message(metadata, content)


def app_with(folder: Path) -> ClientApp:
    """Make a client that adds 1, as if in a new process."""
    mod = recording_mod(folder)
    app = ClientApp()

    @app.train(mods=[mod])
    def fit(request: Message, context: Context) -> Message:
        arrays = {name: one.numpy() for name, one in request.content["arrays"].items()}
        arrays["w"] = arrays["w"] + 1
        if arrays["w"][0] > 100:
            raise RuntimeError("patient 7")
        content = RecordDict(
            {
                "arrays": ArrayRecord({name: Array(one) for name, one in arrays.items()}),
                "metrics": MetricRecord({"num-examples": 7}),
            }
        )
        return Message(content, reply_to=request)

    @app.evaluate(mods=[mod])
    def evaluate(request: Message, context: Context) -> Message:
        return Message(RecordDict({"m": MetricRecord({"loss": 0.5})}), reply_to=request)

    @app.query(mods=[mod])
    def query(request: Message, context: Context) -> Message:
        return Message(RecordDict(), reply_to=request)

    return app


def transcript(folder: Path) -> Path:
    return folder / f"run-{RUN}-node-{NODE}"


def read_messages(folder: Path) -> Sequence[TranscriptMessage]:
    verify_transcript(transcript(folder))
    return open_transcript(transcript(folder)).messages


def test_writes_the_partition_of_the_node_beside_the_transcript(tmp_path: Path) -> None:
    app_with(tmp_path)(message("train", 0.0, 1), CONTEXT)
    assert not (transcript(tmp_path) / "node_names.json").exists()
    numbered = Context(RUN, NODE, {"partition-id": 4}, RecordDict(), {})
    app_with(tmp_path)(message("train", 1.0, 2), numbered)
    assert json.loads((transcript(tmp_path) / "node_names.json").read_text()) == {ME: "4"}


def test_records_a_clients_messages_across_processes(tmp_path: Path) -> None:
    requests = [
        message("train", 0.0, 1),
        message("evaluate", 5.0, 2),
        message("train", 5.0, 3),
        message("query", 0.0, 4),
        message("evaluate", 9.0, 5),
    ]
    for one in requests:
        reply = app_with(tmp_path)(one, CONTEXT)
        assert reply.metadata.reply_to_message_id == one.metadata.message_id
    found = [
        (one.round, one.sender, type(one.body).__name__) for one in read_messages(tmp_path)
    ]
    assert found == [
        (0, SERVER, "Broadcast"), (0, ME, "Update"),
        (1, SERVER, "Broadcast"), (1, ME, "Evaluation"),
        (1, SERVER, "Broadcast"), (1, ME, "Update"),
        (2, SERVER, "Broadcast"), (2, ME, "Evaluation"),
    ]  # fmt: skip
    update = read_messages(tmp_path)[1]
    assert update.readers == {SERVER}
    assert (update.body.examples, update.body.delta["w"].item()) == (7, 1.0)
    assert read_manifest(transcript(tmp_path)).parties == (SERVER, ME)
    assert not truth_path(transcript(tmp_path)).exists()


def test_omits_a_counter_in_later_processes(tmp_path: Path) -> None:
    app_with(tmp_path)(message("train", 0.0, 1, np.array(3)), CONTEXT)
    app_with(tmp_path)(message("evaluate", 1.0, 2, np.array(3.5)), CONTEXT)
    app_with(tmp_path)(message("train", 1.0, 3, np.array(3.5)), CONTEXT)
    assert read_manifest(transcript(tmp_path)).left_out == ("seen",)
    assert [one.round for one in read_messages(tmp_path)] == [0, 0, 1, 1, 1, 1]


def test_a_new_model_after_evaluation_begins_a_round(tmp_path: Path) -> None:
    app_with(tmp_path)(message("evaluate", 1.0, 1), CONTEXT)
    app_with(tmp_path)(message("train", 2.0, 2), CONTEXT)
    assert [one.round for one in read_messages(tmp_path)] == [0, 0, 1, 1]


def test_an_error_of_the_app_is_raised_and_its_reply_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="patient 7"):
        app_with(tmp_path)(message("train", 100.0, 1), CONTEXT)
    assert [type(one.body) for one in read_messages(tmp_path)] == [Broadcast, MissingReply]


def test_errors_of_the_recorder_do_not_reach_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    reply = app_with(tmp_path / "file")(message("train", 0.0, 1), CONTEXT)
    assert reply.content["arrays"]["w"].numpy().tolist() == [1.0]
    assert "the run continues" in caplog.text
    app_with(tmp_path)(message("train", 0.0, 1), CONTEXT)
    (transcript(tmp_path) / "transcript" / "manifest.json").write_text("{")
    reply = app_with(tmp_path)(message("train", 0.0, 1), CONTEXT)
    assert reply.content["arrays"]["w"].numpy().tolist() == [1.0]


def test_records_updates_after_the_noise_of_later_mods(tmp_path: Path) -> None:
    app = ClientApp()

    @app.train(mods=[recording_mod(tmp_path), LocalDpMod(1.0, 1.0, 1.0, 1e-5)])
    def fit(request: Message, context: Context) -> Message:
        arrays = ArrayRecord({"w": Array(request.content["arrays"]["w"].numpy() + 0.5)})
        return Message(RecordDict({"arrays": arrays}), reply_to=request)

    reply = app(message("train", 2.0, 1), CONTEXT)
    update = read_messages(tmp_path)[1].body
    sent = reply.content["arrays"]["w"].numpy()[0]
    assert sent != 2.5
    assert update.delta["w"].item() == np.float32(sent) - np.float32(2.0)
