"""What a stored run holds, as a value, as text and in a notebook: names from it do nothing."""

import json
from pathlib import Path
from shutil import rmtree

import pytest
import torch

from overheard.archive.layout import manifest_path, messages_path
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.archive.run_end import mark_end
from overheard.core.errors import TranscriptError
from overheard.core.messages import Aggregate, Broadcast, Message, UnstoredMessage, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.report.show import show

HOSTILE = "<b>\u202e\x1b[2J"


def recorded(
    folder: Path,
    sizes: tuple[int | None, int | None] = (5, 7),
    planned: int | None = None,
) -> Path:
    """One round in which two clients answer the server."""
    who = (client(0), client(1))
    manifest = Manifest(None, "Mlp()", None, (), (SERVER, *who), rounds=planned)
    recorder = Recorder(folder, manifest)
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


def stored(folder: Path, *replies: Message) -> str:
    """Show one round with these replies."""
    recorder = Recorder(folder, Manifest(None, "", None, (), (SERVER,), rounds=None))
    with recorder.open_round() as now:
        now.record(Message(0, SERVER, frozenset(), Broadcast({"w": torch.zeros(2)})))
        for reply in replies:
            now.record(reply)
    return " ".join(str(show(folder)).split())


def test_what_is_not_stored_is_not_called_unreadable(tmp_path: Path):
    trees = UnstoredMessage("text", "trees in JSON")
    text = stored(tmp_path, Message(0, client(0), frozenset({SERVER}), trees))
    assert "No party can read" not in text
    assert "server reads individual replies of 1 other party that are not stored (text)" in text


def test_a_masked_reply_is_read_by_nobody_and_its_cohort_by_the_server(tmp_path: Path):
    masked = UnstoredMessage("masked", "secure aggregation", 5)
    mean = Aggregate({"w": torch.ones(2)}, frozenset({client(0), client(1)}), 10)
    text = stored(
        tmp_path,
        *(Message(0, client(k), frozenset({SERVER}), masked) for k in (0, 1)),
        Message(0, COHORT, frozenset({SERVER}), mean),
    )
    assert "No party can read another party's individual updates." in text
    assert "server reads the mean update of 2 parties in 1 round." in text


def test_names_a_client_whose_line_was_removed(tmp_path: Path):
    def told() -> str:
        return " ".join(str(show(tmp_path)).split())

    sentence = (
        "client/1, round 0: a model was sent, and neither a reply nor why there is none is "
        "recorded."
    )
    path = messages_path(recorded(tmp_path) / "transcript", 0)
    assert "a model was sent" not in told()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    assert sentence in told()
    # The final model alone, which nobody answers.
    path.write_text(lines[0])
    assert "a model was sent" not in told()


@pytest.mark.parametrize("rounds", ["empty", "dangling", "ended"])
def test_refuses_a_recording_without_rounds(tmp_path: Path, rounds: str):
    folder = recorded(tmp_path / "run") / "transcript" / "rounds"
    messages_path(folder.parent, 0).unlink()
    # As the recorder leaves it while the first round goes on.
    assert dict(show(tmp_path / "run").facts)["rounds"].startswith("0 recorded")
    if rounds == "ended":
        mark_end(tmp_path / "run")
    else:
        rmtree(folder)
    if rounds == "dangling":
        folder.symlink_to(tmp_path / "gone")
    elif rounds == "empty":
        folder.mkdir()
    with pytest.raises(TranscriptError, match="has no round"):
        show(tmp_path / "run")


def test_the_first_line_names_a_histogram_of_labels_in_clear(tmp_path: Path):
    update = Update({"w": torch.ones(2)}, 9, {"labels[0]": 4.0, "labels[1]": 5.0})
    text = stored(tmp_path, Message(0, client(0), frozenset({SERVER}), update))
    assert text.startswith("told labels is a histogram of labels in clear text")


def test_says_how_many_of_the_planned_rounds_are_recorded(tmp_path: Path) -> None:
    incomplete = show(recorded(tmp_path / "few", planned=300))
    assert dict(incomplete.facts)["rounds"] == "300, INCOMPLETE: 1 of 300 rounds recorded"
    unknown = show(recorded(tmp_path / "unknown"))
    assert dict(unknown.facts)["rounds"].endswith("and no mark of the end of the run")
    mark_end(tmp_path / "unknown")
    assert dict(show(tmp_path / "unknown").facts)["rounds"].endswith("is not recorded")
