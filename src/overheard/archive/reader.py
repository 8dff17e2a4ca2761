"""Opens and verifies a stored transcript; weights stay on disk until they are accessed."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from overheard.archive.layout import (
    count_committed_rounds,
    messages_path,
    plain_file_sizes,
    round_folder,
    transcript_folder,
    weights_path,
)
from overheard.archive.manifest import describe_damage, read_manifest
from overheard.archive.message_bodies import LineLocation, declared_shapes, read_message
from overheard.archive.message_lines import LINE_PARSER, BroadcastLine, Line, stored_files
from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.archive.weights import Shapes, StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Message, Update, Weights
from overheard.core.transcript import Transcript
from overheard.disk.limits import ARRAY, refuse_large
from overheard.disk.reading import read_json_text


def open_transcript(folder: Path) -> Transcript:
    """Open all committed messages of a run, in the order in which they were sent.

    Reads the message lists and checks the size of each file. Weights are read when an attack
    accesses them, one tensor at a time; each file is then compared with the SHA-256 of its
    message. `verify_transcript` checks every byte.

    Args:
        folder: the folder of the run or of the transcript.

    Raises:
        TranscriptError: if the folder has no transcript, or a damaged one.

    """
    read_manifest(folder)
    messages, held = list[Message](), 0
    for entry in _entries(transcript_folder(folder)):
        messages.append(entry.message)
        if isinstance(entry.message.body, DistilledSet):
            held += entry.message.body.inputs.nbytes
            refuse_large(f"{folder}: its distilled data", held, TranscriptError, part=ARRAY)
    return Transcript(tuple(messages))


def read_round(folder: Path, number: int) -> tuple[Message, ...]:
    """Read all messages of one committed round, as `open_transcript` does."""
    return tuple(entry.message for entry in _entries_of(transcript_folder(folder), number))


def verify_transcript(folder: Path) -> int:
    """Verify the digest and values of every weights file; return the number of files.

    Reads the whole transcript, one tensor at a time.

    Raises:
        TranscriptError: at the first file that was changed or has invalid weights.

    """
    from overheard.archive.tensor_files import altered_file_error, file_sha256  # it loads torch

    transcript = transcript_folder(folder)
    read_manifest(folder)
    checked = 0
    for entry in _entries(transcript):
        for file in stored_files(entry.line.body):
            path = weights_path(transcript, entry.line.round, file.name)
            found = file_sha256(path)
            if found != file.sha256:
                raise altered_file_error(path, found, file.sha256)
            checked += 1
        for tensors in _weights_of(entry.message):
            for name in tensors:
                tensors[name]
    return checked


@dataclass(frozen=True, slots=True)
class _Entry:
    line: Line
    message: Message


def _entries(transcript: Path) -> Iterator[_Entry]:
    """Iterate over all committed messages with their lines, in the order sent."""
    for number in range(count_committed_rounds(transcript)):
        yield from _entries_of(transcript, number)


def _entries_of(transcript: Path, number: int) -> Iterator[_Entry]:
    shapes: Shapes | None = None
    path = messages_path(transcript, number)
    content = read_json_text(path, TranscriptError, inside=transcript)
    if not content:
        raise TranscriptError(f"{path} has no message: copy the whole transcript again")
    sizes = plain_file_sizes(round_folder(transcript, number), transcript)
    named = set[str]()
    # Read line by line, as a million short lines take 50 times as much memory.
    for count, raw in enumerate(BytesIO(content), start=1):
        location = LineLocation(transcript, number, count)
        line = _parse_line(raw, location)
        for file in stored_files(line.body):
            if file.name in named:
                raise location.error(f"names {file.name}, as another line does: record again")
            named.add(file.name)
        if isinstance(line.body, BroadcastLine):
            shapes = declared_shapes(line.body.parameters)
        yield _Entry(line, read_message(line, location, shapes, sizes))


def _parse_line(raw: bytes, location: LineLocation) -> Line:
    try:
        refuse_repeated_keys(raw)
        return LINE_PARSER.validate_json(raw)
    except ValueError as error:
        raise location.error(
            f"is damaged: {describe_damage(error)}; copy the whole transcript again"
        ) from error


def weights_paths(message: Message) -> tuple[Path, ...]:
    """Return the files of a message whose weights stay on disk until they are accessed."""
    return tuple(one.path for one in _weights_of(message) if isinstance(one, StoredWeights))


def _weights_of(message: Message) -> tuple[Weights, ...]:
    match message.body:
        case Broadcast():
            found = (message.body.weights, message.body.control)
        case Update():
            found = (message.body.delta, message.body.control)
        case Aggregate():
            found = (message.body.delta, None)
        case _:
            return ()
    return tuple(weights for weights in found if weights is not None)
