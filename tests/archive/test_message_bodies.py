import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from overheard.archive.layout import messages_path
from overheard.archive.manifest import Manifest
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
