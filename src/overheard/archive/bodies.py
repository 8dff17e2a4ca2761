"""Reads a message from its stored line and the tensor file beside it."""

from dataclasses import dataclass
from pathlib import Path

from overheard.archive.layout import messages_path, size_inside, weights_path
from overheard.archive.lines import (
    BodyLine,
    BroadcastLine,
    DistilledLine,
    EvaluationLine,
    Line,
    MissingLine,
    StoredFile,
    UpdateLine,
    stored_file,
)
from overheard.archive.spelled import spelled
from overheard.archive.weights import Shapes, StoredWeights, read_tensors
from overheard.core.errors import TranscriptError
from overheard.core.messages import (
    Aggregate,
    Body,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    Missing,
    Times,
    Update,
)
from overheard.core.parties import party

DISTILLED = ("inputs", "labels", "rates", "counts")
"""The tensors of a distilled set."""


MOST_EXAMPLES = 2**53
"""Exclusive upper bound of a client's example count: float64 represents smaller integers."""


@dataclass(frozen=True, slots=True)
class LinePlace:
    """The location of a line in a transcript, for error messages."""

    transcript: Path
    round: int
    number: int

    def refuse(self, why: str) -> TranscriptError:
        """Return an error that this line cannot be read, with the reason."""
        path = messages_path(self.transcript, self.round)
        return TranscriptError(f"{path} line {self.number}: {spelled(why)}")


def message_of(line: Line, place: LinePlace, shapes: Shapes | None) -> Message:
    """Return the message of a line; its weights stay on disk until they are accessed.

    Args:
        line: the line.
        place: its location.
        shapes: of the tensors in this round's broadcast, which may be this line; None if there
            was no broadcast yet.

    Raises:
        TranscriptError: if the line contradicts itself, its location or its file.

    """
    if line.round != place.round:
        raise place.refuse(
            f"is of round {line.round}: move it to that round's folder, or record again"
        )
    file = stored_file(line.body)
    try:
        return Message(
            line.round,
            party(line.sender),
            frozenset(party(name) for name in line.readers),
            _body_of(line.body, place, shapes, None if file is None else _checked(file, place)),
            None if line.times is None else Times(line.times.sent, line.times.received),
        )
    except ValueError as error:
        raise place.refuse(str(error)) from error


def shapes_in(body: BroadcastLine) -> Shapes:
    """Return the tensor shapes that a broadcast declares."""
    return {parameter.name: parameter.shape for parameter in body.parameters}


def _checked(file: StoredFile, location: LinePlace) -> Path:
    """Return the path of a file after checking that it has the recorded size."""
    path = weights_path(location.transcript, location.round, file.name)
    size = size_inside(path, location.transcript)
    if size != file.size:
        raise TranscriptError(
            f"{path} has {size} bytes, but {file.size} were written: it was cut short or "
            "changed; copy the whole transcript again"
        )
    return path


def _body_of(
    body: BodyLine,
    location: LinePlace,
    shapes: Shapes | None,
    path: Path | None,
) -> Body:
    if isinstance(body, MissingLine):
        return Missing(body.reason)
    if isinstance(body, EvaluationLine):
        return Evaluation(body.metrics, _size(body.examples, location))
    assert path is not None, "all other messages have a file"
    if isinstance(body, DistilledLine):
        return _distilled(path)
    if shapes is None:
        raise location.refuse("comes before the round's broadcast: record broadcasts too")
    if isinstance(body, BroadcastLine):
        return Broadcast(StoredWeights(path, shapes), body.config)
    delta, examples = StoredWeights(path, shapes), _size(body.examples, location)
    if isinstance(body, UpdateLine):
        return Update(delta, examples, body.metrics)
    return Aggregate(delta, frozenset(party(name) for name in body.cohort), examples)


def _size(examples: int | None, location: LinePlace) -> int | None:
    if examples is not None and not 0 <= examples < MOST_EXAMPLES:
        raise location.refuse(f"reports {examples} examples: record the true size, or null")
    return examples


def _distilled(path: Path) -> DistilledSet:
    """Read a distilled set at once, as it is small."""
    read = read_tensors(path, DISTILLED)
    inputs, labels, rates, counts = (read[name] for name in DISTILLED)
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
