"""What a stored run holds, as a value, as text and in a notebook: names from it do nothing."""

import json
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import manifest_path
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.report.show import show

HOSTILE = "<b>\u202e\x1b[2J"


def recorded(folder: Path, sizes: tuple[int | None, int | None] = (5, 7)) -> Path:
    """One round in which two clients answer the server."""
    who = (client(0), client(1))
    recorder = Recorder(folder, Manifest(None, "Mlp()", None, (), (SERVER, *who), rounds=None))
    with recorder.open_round() as now:
        now.record(Message(0, SERVER, frozenset(who), Broadcast({"w": torch.zeros(2)})))
        for one, size in zip(who, sizes, strict=True):
            update = Update({"w": torch.ones(2)}, size)
            now.record(Message(0, one, frozenset({SERVER}), update))
    return folder


def test_counts_what_each_observer_can_read(tmp_path: Path):
    overview = show(recorded(tmp_path / "run"))
    assert dict(overview.facts)["model"] == "Mlp()"
    assert overview.columns == ("broadcasts", "updates", "example counts")
    assert {row.observers: row.counts for row in (*overview.rows, overview.total)} == {
        "client/0": ("1", "1", "1"),
        "client/1": ("1", "1", "1"),
        "server": ("1", "2", "2"),
        "total": ("1", "2", "2"),
    }
    assert overview.readers == (
        "server reads the individual updates of 2 other parties.",
        "The network, which carries the encrypted messages, sees who sends how many bytes, and "
        "in which rounds.",
    )
    assert [one.kind for one in overview.metadata] == ["examples"]


def test_says_if_messages_contain_only_weights(tmp_path: Path):
    overview = show(recorded(tmp_path / "run", (None, None)))
    assert str(overview).endswith("The messages contain nothing but weights.")
    assert "The messages contain nothing but weights." in overview._repr_html_()


def test_escapes_names_of_a_recording(tmp_path: Path):
    path = manifest_path(recorded(tmp_path / "run") / "transcript")
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"model": HOSTILE, "framework": HOSTILE}))
    overview = show(tmp_path / "run")
    assert str(overview).replace("\n", "").isprintable()
    page = overview._repr_html_()
    assert "&lt;b&gt;" in page
    for raw in ("<b>", "\u202e", "\x1b"):
        assert raw not in page


def test_a_folder_without_a_transcript_is_refused(tmp_path: Path):
    with pytest.raises(TranscriptError):
        show(tmp_path)
