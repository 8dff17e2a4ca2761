"""Messages as lines and bodies."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.torch import save_file

from overheard.archive.excerpt import MAX_LENGTH, printable_excerpt
from overheard.archive.layout import messages_path
from overheard.archive.manifest import Manifest
from overheard.archive.message_lines import (
    LINE_PARSER,
    Line,
    MissingReplyLine,
    StoredFile,
    UpdateLine,
    stored_file,
)
from overheard.archive.reader import open_transcript
from overheard.archive.recorder import Recorder
from overheard.core.errors import TranscriptError
from overheard.core.messages import DistilledSet, Message
from overheard.core.parties import SERVER, client
from overheard.disk.digests import sha256_of


def edit(folder: Path, line: int, *path: str, to: object) -> None:
    """Change one field of one line of round 0."""
    file = messages_path(folder / "transcript", 0)
    lines = [json.loads(raw) for raw in file.read_text().splitlines()]
    part = lines[line]
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = to
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))


@pytest.mark.parametrize(
    ("line", "path", "to", "why"),
    [
        (2, ("round",), 1, "line 3: is of round 1"),
        (2, ("sender",), "../x", "line 3: the party name"),
        (2, ("readers",), ["server", "a b"], "line 3: the party name"),
        (2, ("readers",), [1], "line 3: is damaged"),
        (2, ("body", "examples"), -5, "line 3: reports -5 examples"),
        (2, ("body", "delta", "name"), "../../manifest.json", "no name of a weights file"),
        (2, ("body", "delta", "name"), "/etc/passwd", "no name of a weights file"),
        (2, ("body", "delta", "name"), "0009-x.safetensors", "cannot be read"),
        (2, ("body", "delta", "size"), 1, "bytes, but 1 were written"),
        (2, ("body", "kind"), "broadcast", "line 3: is damaged"),
        (2, ("round",), -1, "line 3: is damaged: round: must be 0 or more"),
        (2, ("readers",), ["server", "server"], "line 3: readers names server twice"),
        (2, ("body", "delta", "size"), -1, "line 3: is damaged: body.update.delta.size"),
        (2, ("body", "metrics"), {"loss": 10**400}, "more than 300 digits"),
        (2, ("body", "metrics"), {"loss": True}, "line 3: is damaged: body.update.metrics"),
        (2, ("body", "examples"), True, "line 3: is damaged: body.update.examples"),
        (
            *(0, ("body", "parameters"), [{"name": "bias", "shape": [1]}] * 2),
            "line 1: parameters names bias twice",
        ),
    ],
)
def test_an_inconsistent_line_is_refused_with_its_location(
    folder: Path, line: int, path: tuple[str, ...], to: object, why: str
) -> None:
    edit(folder, line, *path, to=to)
    with pytest.raises(TranscriptError, match="r0000") as caught:
        open_transcript(folder)
    assert why in str(caught.value)


def test_a_line_with_a_key_twice_is_refused(folder: Path) -> None:
    file = messages_path(folder / "transcript", 0)
    file.write_text(file.read_text().replace('"examples":5', '"examples":5,"examples":6'))
    with pytest.raises(
        TranscriptError, match="line 3: is damaged: has the key 'examples' twice"
    ):
        open_transcript(folder)


def test_an_update_before_the_broadcast_of_its_round_is_refused(folder: Path) -> None:
    file = messages_path(folder / "transcript", 0)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[2], lines[0]]))
    with pytest.raises(TranscriptError, match="line 1: comes before the round's broadcast"):
        open_transcript(folder)


@pytest.fixture
def distilled(tmp_path: Path, manifest: Manifest) -> Path:
    sent = DistilledSet(
        torch.ones(3, 1, 2, 2),
        torch.tensor([[1.0, 0.0]] * 3),
        torch.tensor([0.1, 0.2, 0.3]),
        torch.tensor([1.0, 0.0, 1.0]),
    )
    recorder = Recorder(tmp_path, manifest)
    with recorder.open_round() as open_round:
        open_round.record(Message(0, client(0), frozenset({SERVER}), sent))
    return tmp_path


def test_a_distilled_set_is_read_as_written(distilled: Path) -> None:
    (message,) = open_transcript(distilled).messages
    assert isinstance(message.body, DistilledSet)
    assert message.body.inputs.shape == (3, 1, 2, 2)
    assert message.body.labels.tolist() == [[1.0, 0.0]] * 3
    assert torch.equal(message.body.rates, torch.tensor([0.1, 0.2, 0.3]))
    assert message.body.counts.tolist() == [1.0, 0.0, 1.0]


def test_a_distilled_set_without_a_rate_for_each_input_is_refused(distilled: Path) -> None:
    (file,) = distilled.rglob("*.safetensors")
    size = file.stat().st_size
    short = {"inputs": torch.ones(3, 4), "labels": torch.ones(3, 2), "rates": torch.ones(2)}
    short["counts"] = torch.ones(3)
    save_file(short, file)
    edit(distilled, 0, "body", "examples", "size", to=file.stat().st_size)
    edit(distilled, 0, "body", "examples", "sha256", to=sha256_of(file))
    assert size != file.stat().st_size
    with pytest.raises(TranscriptError, match="one rate and one count for each input"):
        open_transcript(distilled)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 10**9 - 1))
def test_a_line_is_a_single_line_that_is_read_as_written(reason: str, size: int) -> None:
    line = Line(size, "client/0", ("server",), MissingReplyLine("missing", reason))
    raw = LINE_PARSER.dump_json(line)
    assert raw.splitlines() == [raw]
    assert LINE_PARSER.validate_json(raw) == line


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_metrics_are_stored_exactly(value: float) -> None:
    body = UpdateLine("update", StoredFile("x", 1, "a" * 64), None, {"loss": value})
    line = Line(0, "client/0", (), body)
    assert LINE_PARSER.validate_json(LINE_PARSER.dump_json(line)) == line
    assert stored_file(line.body) == StoredFile("x", 1, "a" * 64)


@pytest.mark.parametrize(
    "body",
    [
        '{"kind": "shout", "reason": ""}',
        '{"kind": "missing"}',
        '{"kind": "missing", "reason": 3}',
        '{"kind": "missing", "reason": "", "more": 1}',
        '{"kind": "update", "delta": {"name": "x", "size": 1, "sha256": ""},'
        ' "examples": 1, "metrics": {"loss": NaN}}',
        '{"kind": "update", "delta": {"name": "x", "size": -1, "sha256": "%s"},'
        ' "examples": 1, "metrics": {}}' % ("a" * 64),
        '{"kind": "update", "delta": {"name": "x", "size": 1, "sha256": "A"},'
        ' "examples": 1, "metrics": {}}',
        '{"kind": "broadcast", "weights": {"name": "x", "size": 1, "sha256": "%s"},'
        ' "parameters": [{"name": "w", "shape": [-1]}]}' % ("a" * 64),
    ],
)
def test_an_invalid_body_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        LINE_PARSER.validate_json(
            f'{{"round": 0, "sender": "a", "readers": [], "body": {body}}}'
        )


def test_printable_text_is_unchanged() -> None:
    assert printable_excerpt("client/3: ä, 漢, [red]") == "client/3: ä, 漢, [red]"


def test_control_characters_are_escaped() -> None:
    text = "".join(map(chr, [*range(32), 127, 0x85, 0x202E, 0xD800, 0xFEFF]))
    assert printable_excerpt(text).isprintable()
    assert printable_excerpt("a\x1b\n") == r"a\x1b\n"


def test_beginning_and_end_of_a_long_text_are_kept() -> None:
    excerpt = printable_excerpt("begin " + "x" * 10**6 + ": fix it")
    assert len(excerpt) == MAX_LENGTH + len(" ... ")
    assert excerpt.startswith("begin x")
    assert excerpt.endswith("x: fix it")
