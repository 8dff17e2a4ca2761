"""Records a run's messages in its folder as they are sent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import inf, isfinite
from pathlib import Path
from typing import final

from overheard.archive.layout import messages_path, round_folder, weights_file_name
from overheard.archive.manifest import Manifest, begin_run
from overheard.archive.message_bodies import DISTILLED_TENSORS, LineLocation, read_message
from overheard.archive.message_lines import (
    LINE_PARSER,
    AggregateLine,
    BodyLine,
    BroadcastLine,
    DistilledLine,
    EvaluationLine,
    Line,
    MissingReplyLine,
    Parameter,
    StoredFile,
    TimestampsLine,
    UnstoredLine,
    UpdateLine,
)
from overheard.archive.tensor_files import to_safetensors
from overheard.archive.tensor_records import shares_records
from overheard.archive.weights import Shapes, tensor_shapes
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    UnstoredMessage,
    Update,
    Weights,
)
from overheard.core.parties import Party, parse_party
from overheard.disk.direct_writer import DirectWriter
from overheard.disk.folders import remove_file, remove_folder
from overheard.disk.limits import JSON, json_memory, limit_of
from overheard.disk.writing import flush_files, write_bytes, write_unflushed

MAX_LINE_BYTES = 2**22
"""Largest line of a message in bytes: some 40,000 metrics, or names of tensors."""


MOST_NAMES = 4
"""The most tensors that an error names."""


@final
class Recorder:
    """Writes the missing rounds of a run to its folder.

    Each message is written as it is sent. A round is committed when it is closed, and then
    survives a power cut. An uncommitted round of a killed run is deleted and recorded again.

    >>> from tempfile import TemporaryDirectory
    >>> from overheard.archive.manifest import Manifest
    >>> from overheard.core.parties import SERVER, client
    >>> from overheard.core.task import Task
    >>> manifest = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER,), rounds=1)
    >>> with TemporaryDirectory() as folder:
    ...     recorder = Recorder(Path(folder), manifest)
    ...     late = Message(0, client(3), frozenset({SERVER}), MissingReply("late"))
    ...     with recorder.open_round() as open_round:
    ...         _ = open_round.record(late)
    ...     recorder.committed_rounds()
    1
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        *,
        inside: Path | None = None,
        direct_writer: DirectWriter | None = None,
    ) -> None:
        """Start a run in this folder, or continue the same run.

        Args:
            folder: the folder of the run.
            manifest: the manifest of the run.
            inside: the output folder that the folder of the run is in; None = they are one.
            direct_writer: writes weights past the page cache; None = write normally.

        Raises:
            OutputError: if the folder has another run or cannot be written to; it is then left
                unchanged.

        """
        self._transcript = folder / "transcript"
        self._inside = folder if inside is None else inside
        self._past_cache = direct_writer
        self._committed = begin_run(folder, manifest, inside=self._inside)

    def committed_rounds(self) -> int:
        """Return the number of committed rounds, which is the number of the next round."""
        return self._committed

    @contextmanager
    def open_round(self) -> Iterator["OpenRound"]:
        """Open the next round; commit it unless it is empty or an exception was raised."""
        number = self._committed
        remove_folder(round_folder(self._transcript, number), inside=self._inside)
        open_round = OpenRound(self._transcript, number, self._inside, self._past_cache)
        yield open_round
        if open_round.close():
            self._committed += 1


@final
class OpenRound:
    """The round that is being recorded; only `Recorder.open_round` opens one."""

    def __init__(
        self,
        transcript: Path,
        number: int,
        inside: Path,
        direct_writer: DirectWriter | None = None,
    ) -> None:
        """Start without messages."""
        self._inside = inside
        self._transcript = transcript
        self._number = number
        self._past_cache = direct_writer
        self._lines: list[bytes] = []
        self._memory = 0
        self._files: list[Path] = []
        self._shapes: Shapes | None = None

    def record(self, message: Message) -> Message:
        """Write a message; return it as read from disk, with its weights on disk.

        A message that raises an error leaves nothing behind, and the round goes on without it.

        Raises:
            ValueError: if the message has another round, an invalid party name, weights that
                are not finite, other tensors than the broadcast, or what JSON cannot store.
            TranscriptError: if it could not be read again, as with an impossible number of
                examples.
            OutputError: if it cannot be written.

        """
        if message.round != self._number:
            raise ValueError(
                f"a message of round {message.round} was recorded in round {self._number}"
            )
        written, shapes = len(self._files), self._shapes
        try:
            return self._record(message)
        except BaseException:
            for path in self._files[written:]:
                remove_file(path, inside=self._inside)
            del self._files[written:]
            # If a broadcast is rejected, its updates must be rejected too.
            self._shapes = shapes
            raise

    def _record(self, message: Message) -> Message:
        body = self._store(message)
        line = Line(
            message.round,
            parse_party(message.sender),
            tuple(sorted(parse_party(name) for name in message.readers)),
            body,
            None
            if message.times is None
            else TimestampsLine(
                _finite_or_none(message.times.sent), _finite_or_none(message.times.received)
            ),
        )
        # Warnings of wrong types are off, as reading the content names them.
        content = LINE_PARSER.dump_json(line, exclude_defaults=True, warnings=False) + b"\n"
        self._check_memory(content)
        location = LineLocation(self._transcript, self._number, len(self._lines) + 1)
        # One line that cannot be read would make all of the recording unreadable.
        read = read_message(LINE_PARSER.validate_json(content), location, self._shapes)
        self._lines.append(content)
        self._memory += json_memory(content)
        return read

    def close(self) -> bool:
        """Commit the messages recorded so far; later ones are committed by the next call.

        Returns whether there are any: a round without a message could not be read again.
        """
        if not self._lines:
            return False
        path = messages_path(self._transcript, self._number)
        if self._files:
            # The folders as well: a power cut loses no round that was committed.
            flush_files([*self._files, *path.parents[1:3]])
        self._files.clear()
        write_bytes(path, b"".join(self._lines), inside=self._inside)
        return True

    def _check_memory(self, content: bytes) -> None:
        memory = json_memory(content)
        left = limit_of(JSON) - self._memory
        if len(content) > MAX_LINE_BYTES or memory > left:
            raise ValueError(
                f"its names and numbers, without the weights, take {len(content)} bytes, and "
                f"{memory} in memory; {MAX_LINE_BYTES} and {left} can be recorded: send fewer"
            )

    def _store(self, message: Message) -> BodyLine:
        body = message.body
        _check_examples(body)
        match body:
            case Broadcast():
                shapes = tensor_shapes(body.weights)
                parameters = tuple(Parameter(name, shape) for name, shape in shapes.items())
                file = self._write_tensors(message.sender, "broadcast", body.weights)
                self._shapes = shapes
                control = self._write_control(message.sender, body.control)
                return BroadcastLine("broadcast", file, parameters, dict(body.config), control)
            case Update():
                own = self._differing_parameters(body.delta)
                file = self._write_tensors(message.sender, "update", body.delta)
                control = self._write_control(message.sender, body.control)
                metrics = _check_finite(body.metrics)
                return UpdateLine(
                    "update",
                    file,
                    body.examples,
                    metrics,
                    control,
                    own,
                    body.texts,
                    body.absent,
                )
            case Aggregate():
                self._check_shapes(body.delta)
                file = self._write_tensors(message.sender, "aggregate", body.delta)
                cohort = tuple(sorted(parse_party(name) for name in body.cohort))
                return AggregateLine("aggregate", file, body.examples, cohort)
            case DistilledSet():
                tensors = (body.inputs, body.labels, body.rates, body.counts)
                named = dict(zip(DISTILLED_TENSORS, tensors, strict=True))
                return DistilledLine(
                    "distilled", self._write_tensors(message.sender, "distilled", named)
                )
            case Evaluation() | MissingReply() | UnstoredMessage():
                return _clear_text_line(body)

    def _write_control(self, sender: Party, control: Weights | None) -> StoredFile | None:
        if control is None:
            return None
        self._check_shapes(control)
        return self._write_tensors(sender, "control", control)

    def _write_tensors(self, sender: Party, kind: str, weights: Weights) -> StoredFile:
        name = weights_file_name(len(self._lines), parse_party(sender), kind)
        content = to_safetensors(weights)
        path = round_folder(self._transcript, self._number) / name
        write_unflushed(path, content, inside=self._inside, direct_writer=self._past_cache)
        self._files.append(path)
        return StoredFile(name, len(content), sha256(content).hexdigest())

    def _differing_parameters(self, delta: Weights) -> tuple[Parameter, ...] | None:
        """Return the tensors of an update that has other records than the broadcast.

        None = it has the tensors of the broadcast. What both have must have the same shapes.
        """
        shapes, start = tensor_shapes(delta), self._shapes or {}
        common = {name: shape for name, shape in shapes.items() if name in start}
        is_part = shapes != start and shares_records(shapes, start)
        if not is_part or any(start[name] != shape for name, shape in common.items()):
            self._check_shapes(delta)
            return None
        return tuple(Parameter(name, shape) for name, shape in shapes.items())

    def _check_shapes(self, delta: Weights) -> None:
        if self._shapes is None:
            raise ValueError("an update was recorded before any broadcast")
        shapes = tensor_shapes(delta)
        if shapes != self._shapes:
            raise ValueError(
                "the update's tensors are not those of the broadcast: "
                + _describe_differences(shapes, self._shapes)
            )


def _clear_text_line(body: Evaluation | MissingReply | UnstoredMessage) -> BodyLine:
    """Return the line of a message without tensors."""
    if isinstance(body, MissingReply):
        return MissingReplyLine("missing", body.reason)
    metrics = _check_finite(body.metrics)
    if isinstance(body, Evaluation):
        return EvaluationLine("evaluation", body.examples, metrics, body.texts)
    return UnstoredLine("unstored", body.kind, body.reason, body.examples, metrics, body.texts)


def _describe_differences(shapes: Shapes, broadcast: Shapes) -> str:
    """Name the first tensors that only one of both has, and those of other shapes."""
    lines = [
        *(f"{name!r} is missing" for name in broadcast if name not in shapes),
        *(f"{name!r} was not broadcast" for name in shapes if name not in broadcast),
        *(
            f"{name!r} has shape {shape}, not {broadcast[name]}"
            for name, shape in shapes.items()
            if shape != broadcast.get(name, shape)
        ),
    ]
    more = len(lines) - MOST_NAMES
    return "; ".join(lines[:MOST_NAMES]) + (f"; and {more} more" if more > 0 else "")


def _check_examples(body: MessageBody) -> None:
    """Raise `ValueError` if a number of examples is not whole: JSON has no NaN."""
    if isinstance(body, Update | Aggregate | Evaluation | UnstoredMessage):
        examples = body.examples
        if examples is not None and not isinstance(examples, int):
            raise ValueError(f"it reports {examples} examples: record the true number, or None")


def _finite_or_none(time: float | None) -> float | None:
    """Return a time; None if it is no time, as senders may state any number."""
    return time if time is not None and isfinite(time) else None


def _check_finite(metrics: Mapping[str, float]) -> dict[str, float]:
    for name, value in metrics.items():
        if not -inf < value < inf:  # a whole number may be too large for `isfinite`
            raise ValueError(f"the metric {name!r} is {value}: remove it")
    return dict(metrics)
