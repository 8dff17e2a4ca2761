"""Reads a message from its stored line and the tensor file beside it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import checked_file_size, messages_path, weights_path
from overheard.archive.message_lines import (
    AggregateLine,
    BodyLine,
    BroadcastLine,
    DistilledLine,
    EvaluationLine,
    Line,
    MissingReplyLine,
    Parameter,
    StoredFile,
    UnstoredLine,
    UpdateLine,
    stored_files,
)
from overheard.archive.repeated_keys import find_repeated
from overheard.archive.weights import Shapes, StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Timestamps,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import parse_party
from overheard.core.settings import MAX_EXAMPLES
from overheard.disk.limits import refuse_sparse

DISTILLED_TENSORS = ("inputs", "labels", "rates", "counts")
"""The tensors of a distilled set."""

NOT_RECORDED = "not recorded: "
"""How a recording of an older Overheard begins the reason of a reply that it did not store."""

NO_SIZES: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LineLocation:
    """The location of a line in a transcript, for error messages."""

    transcript: Path
    round: int
    line: int

    def error(self, why: str) -> TranscriptError:
        """Return an error that this line cannot be read, with the reason."""
        path = messages_path(self.transcript, self.round)
        return TranscriptError(f"{path} line {self.line}: {printable_excerpt(why)}")


@dataclass(frozen=True, slots=True)
class _CheckedFile:
    """A file of the size that its line states, and the digest that the line states."""

    path: Path
    sha256: str

    def weights(self, shapes: Shapes) -> StoredWeights:
        return StoredWeights(self.path, shapes, self.sha256)


def read_message(
    line: Line,
    location: LineLocation,
    shapes: Shapes | None,
    sizes: Mapping[str, int] = NO_SIZES,
) -> Message:
    """Return the message of a line; its weights stay on disk until they are accessed.

    Args:
        line: the line.
        location: its location.
        shapes: the shapes of the tensors in this round's broadcast (which may be the message of
            this line); None if there was no broadcast yet.
        sizes: the sizes of files of this round that are known to be inside the transcript's
            folder, by name; all others are looked up one by one.

    Raises:
        TranscriptError: if the line contradicts itself, its location or its file.

    """
    if line.round != location.round:
        raise location.error(
            f"is of round {line.round}: move it to that round's folder, or record again"
        )
    for key, names in _unique_names(line):
        if repeated := find_repeated(names):
            raise location.error(f"{key} names {repeated[0]} twice: record it once")
    files = [
        _CheckedFile(_check_file(file, location, sizes), file.sha256)
        for file in stored_files(line.body)
    ]
    try:
        return Message(
            line.round,
            parse_party(line.sender),
            frozenset(parse_party(name) for name in line.readers),
            _read_body(
                line.body,
                location,
                shapes,
                files,
            ),
            None if line.times is None else Timestamps(line.times.sent, line.times.received),
        )
    except ValueError as error:
        raise location.error(str(error)) from error


def _unique_names(line: Line) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield each list of a line that may name nothing twice, with its key."""
    yield "readers", line.readers
    if isinstance(line.body, AggregateLine):
        yield "cohort", line.body.cohort
    if isinstance(line.body, BroadcastLine | UpdateLine):
        yield "parameters", (one.name for one in line.body.parameters or ())


def declared_shapes(parameters: Sequence[Parameter]) -> Shapes:
    """Return the tensor shapes that a line declares."""
    return {parameter.name: parameter.shape for parameter in parameters}


def _check_file(file: StoredFile, location: LineLocation, sizes: Mapping[str, int]) -> Path:
    """Return the path of a file after checking that it has the recorded size."""
    path = weights_path(location.transcript, location.round, file.name)
    size = sizes.get(file.name)
    if size is None:
        size = checked_file_size(path, location.transcript)
    if size != file.size:
        raise TranscriptError(
            f"{path} has {size} bytes, but {file.size} were written: it was cut short or "
            "changed; copy the whole transcript again"
        )
    return path


def _read_body(
    body: BodyLine,
    location: LineLocation,
    shapes: Shapes | None,
    files: Sequence[_CheckedFile],
) -> MessageBody:
    if isinstance(body, MissingReplyLine | UnstoredLine | EvaluationLine):
        return _read_clear_text(body, location)
    assert files, "all other messages have a file"
    file, *rest = files
    if isinstance(body, DistilledLine):
        return _read_distilled_set(file)
    if shapes is None:
        raise location.error("comes before the round's broadcast: record broadcasts too")
    control = rest[0].weights(shapes) if rest else None
    if isinstance(body, BroadcastLine):
        return Broadcast(file.weights(shapes), body.config, control)
    examples = _check_examples(body.examples, location)
    if isinstance(body, UpdateLine):
        sent = shapes if body.parameters is None else declared_shapes(body.parameters)
        return Update(
            file.weights(sent), examples, body.metrics, control, body.texts, body.absent
        )
    return Aggregate(
        file.weights(shapes), frozenset(parse_party(name) for name in body.cohort), examples
    )


def _read_clear_text(
    body: MissingReplyLine | UnstoredLine | EvaluationLine, location: LineLocation
) -> MessageBody:
    """Read a message without tensors."""
    if isinstance(body, MissingReplyLine):
        if body.reason.startswith(NOT_RECORDED):
            return UnstoredMessage("other", body.reason.removeprefix(NOT_RECORDED))
        return MissingReply(body.reason)
    examples = _check_examples(body.examples, location)
    if isinstance(body, UnstoredLine):
        return UnstoredMessage(body.content, body.reason, examples, body.metrics, body.texts)
    return Evaluation(body.metrics, examples, body.texts)


def _check_examples(examples: int | None, location: LineLocation) -> int | None:
    if examples is not None and not 0 <= examples < MAX_EXAMPLES:
        raise location.error(f"reports {examples} examples: record the true number, or null")
    return examples


def _read_distilled_set(file: _CheckedFile) -> DistilledSet:
    """Read a distilled set at once, as it is small."""
    from overheard.archive.tensor_files import read_tensors  # only here: it loads torch

    path = file.path
    refuse_sparse(path, TranscriptError, is_eager=True)
    read = read_tensors(path, DISTILLED_TENSORS, sha256=file.sha256)
    inputs, labels, rates, counts = (read[name] for name in DISTILLED_TENSORS)
    if not (
        inputs.ndim >= 1
        and labels.ndim == 2
        and rates.ndim == counts.ndim == 1
        and len(inputs) == len(labels) == len(rates) == len(counts)
    ):
        raise TranscriptError(
            f"{path}: inputs {tuple(inputs.shape)}, labels {tuple(labels.shape)}, rates "
            f"{tuple(rates.shape)} and counts {tuple(counts.shape)} do not match: record one "
            "label row, one rate and one count for each input"
        )
    return DistilledSet(inputs, labels, rates, counts)
