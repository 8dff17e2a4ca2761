"""Names of nodes are written beside the recording, and never disturb it."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ConfigRecord, Message

from overheard.recorders.flower import RecordingGrid
from overheard.recorders.node_names import NAMES_FILE
from tests.recorders.test_flower import (
    NODES,
    START,
    Nodes,
    a_run,
    answer,
    ask,
    read_messages,
    record_of,
)

__all__ = ["a_run"]  # a fixture that every test here uses


def names_of(folder: Path) -> Mapping[str, str]:
    found: Mapping[str, str] = json.loads((folder / NAMES_FILE).read_text())
    return found


def record(
    folder: Path, reply: Callable[[Message], Message] = answer, **options: object
) -> RecordingGrid:
    grid = RecordingGrid(Nodes(reply), folder, **options)
    list(grid.get_node_ids())
    grid.send_and_receive(ask("train", record_of(START)))
    grid.finish()
    return grid


def test_takes_another_value_as_text_and_cuts_it_to_a_plain_line(tmp_path: Path):
    def told(message: Message) -> Message:
        reply = answer(message)
        name = "ward\n\x1b[31m" + "x" * 300 if message.metadata.dst_node_id == 11 else "B"
        reply.content["who"] = ConfigRecord({"hospital": name})
        return reply

    record(tmp_path, told, node_names="hospital")
    names = names_of(tmp_path)
    assert names["client/15"] == "B"
    assert names["client/11"].startswith("ward??[31mxxx")
    assert len(names["client/11"]) == 203


def test_a_number_too_long_to_be_written_is_no_name(tmp_path: Path):
    def told(message: Message) -> Message:
        return answer(message, **{"partition-id": 10**5000 if is_first(message) else 7})

    def is_first(message: Message) -> bool:
        return message.metadata.dst_node_id == NODES[0]

    assert record(tmp_path, told).stopped is None
    assert names_of(tmp_path) == {f"client/{node}": "7" for node in NODES[1:]}


@pytest.mark.parametrize("source", [{11: "a", 15: "b"}, lambda node: {11: "a", 15: "b"}[node]])
def test_takes_names_from_a_mapping_or_a_function(
    tmp_path: Path, source: object, caplog: pytest.LogCaptureFixture
):
    grid = record(tmp_path, node_names=source)
    assert names_of(tmp_path) == {"client/11": "a", "client/15": "b"}
    # The function failed for one node, which does not end the recording.
    assert ("node_names failed" in caplog.text) == callable(source)
    assert grid.stopped is None
    assert len(read_messages(tmp_path)) == 1 + len(NODES)


def test_flowers_log_says_where_a_run_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logging.getLogger("flwr"), "propagate", True)
    with caplog.at_level(logging.INFO):
        record(tmp_path / "one")
        record(tmp_path / "one", node_names={11: "a"})
    assert f"this run is recorded to {tmp_path}/one" in caplog.messages[0]
    assert any(f"this run is recorded to {tmp_path}/one-2" in line for line in caplog.messages)
    assert names_of(tmp_path / "one-2") == {"client/11": "a"}
    assert not (tmp_path / "one" / NAMES_FILE).exists()
