"""Records a run's messages in its folder as they are sent."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import final

from overheard.archive.atomic import flush, output_error, write_ahead, write_bytes
from overheard.archive.bodies import DISTILLED, LinePlace, message_of
from overheard.archive.layout import (
    messages_path,
    round_folder,
    weights_name,
)
from overheard.archive.lines import (
    PARSER,
    AggregateLine,
    BodyLine,
    BroadcastLine,
    DistilledLine,
    EvaluationLine,
    Line,
    MissingLine,
    Parameter,
    StoredFile,
    TimesLine,
    UpdateLine,
)
from overheard.archive.manifest import Manifest, begin
from overheard.archive.past_cache import PastCache
from overheard.archive.pieces import pieces
from overheard.archive.weights import Shapes, shapes_of
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    Missing,
    Update,
    Weights,
)
from overheard.core.parties import Party, party


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
    ...     with recorder.round() as open_round:
    ...         _ = open_round.send(Message(0, client(3), frozenset({SERVER}), Missing("late")))
    ...     recorder.committed()
    1
    """

    def __init__(
        self, folder: Path, manifest: Manifest, *, past_cache: PastCache | None = None
    ) -> None:
        """Start a run in this folder, or continue the same run.

        Args:
            folder: of the run.
            manifest: of the run.
            past_cache: writes weights past the page cache; None = write normally.

        Raises:
            OutputError: if the folder has another run or cannot be written to; it is then left
                unchanged.

        """
        self._transcript = folder / "transcript"
        self._past_cache = past_cache
        self._committed = begin(folder, manifest)

    def committed(self) -> int:
        """Return the number of committed rounds, which is the number of the next round."""
        return self._committed

    @contextmanager
    def round(self) -> Iterator["OpenRound"]:
        """Open the next round, and commit it unless an exception was raised."""
        number = self._committed
        folder = round_folder(self._transcript, number)
        try:
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as error:
            raise output_error(folder, error) from error
        open_round = OpenRound(self._transcript, number, self._past_cache)
        yield open_round
        open_round.close()
        self._committed += 1


@final
class OpenRound:
    """The round that is being recorded; only `Recorder.round` opens one."""

    def __init__(
        self, transcript: Path, number: int, past_cache: PastCache | None = None
    ) -> None:
        """Start without messages."""
        self._transcript = transcript
        self._number = number
        self._past_cache = past_cache
        self._lines: list[Line] = []
        self._files: list[Path] = []
        self._shapes: Shapes | None = None

    def send(self, message: Message) -> Message:
        """Write a message; return it as read from disk, with its weights on disk.

        Raises:
            ValueError: if the message has another round, an invalid party name, weights that
                are not finite, or other tensors than the broadcast.
            OutputError: if it cannot be written.

        """
        if message.round != self._number:
            raise ValueError(
                f"a message of round {message.round} was recorded in round {self._number}"
            )
        body = self._store(message)
        line = Line(
            message.round,
            party(message.sender),
            tuple(sorted(party(name) for name in message.readers)),
            body,
            None
            if message.times is None
            else TimesLine(message.times.sent, message.times.received),
        )
        self._lines.append(line)
        location = LinePlace(self._transcript, self._number, len(self._lines))
        return message_of(line, location, self._shapes)

    def close(self) -> None:
        """Commit the messages recorded so far.

        Later messages are committed by the next call.
        """
        flush(self._files)
        self._files.clear()
        content = b"".join(
            PARSER.dump_json(line, exclude_defaults=True) + b"\n" for line in self._lines
        )
        write_bytes(messages_path(self._transcript, self._number), content)

    def _store(self, message: Message) -> BodyLine:
        body = message.body
        match body:
            case Broadcast():
                shapes = shapes_of(body.weights)
                parameters = tuple(Parameter(name, shape) for name, shape in shapes.items())
                file = self._put(message.sender, "broadcast", body.weights)
                # Set last: if the broadcast is rejected, its updates must be rejected too.
                self._shapes = shapes
                return BroadcastLine("broadcast", file, parameters, dict(body.config))
            case Update():
                self._refuse_another_model(body.delta)
                file = self._put(message.sender, "update", body.delta)
                return UpdateLine("update", file, body.examples, _finite(body.metrics))
            case Aggregate():
                self._refuse_another_model(body.delta)
                file = self._put(message.sender, "aggregate", body.delta)
                cohort = tuple(sorted(party(name) for name in body.cohort))
                return AggregateLine("aggregate", file, body.examples, cohort)
            case DistilledSet():
                tensors = (body.inputs, body.labels, body.rates, body.counts)
                named = dict(zip(DISTILLED, tensors, strict=True))
                return DistilledLine("distilled", self._put(message.sender, "distilled", named))
            case Evaluation():
                return EvaluationLine("evaluation", body.examples, _finite(body.metrics))
            case Missing():
                return MissingLine("missing", body.reason)

    def _put(self, sender: Party, kind: str, weights: Weights) -> StoredFile:
        name = weights_name(len(self._lines), party(sender), kind)
        content, digest = pieces(weights), sha256()
        path = round_folder(self._transcript, self._number) / name
        write_ahead(path, *content, past_cache=self._past_cache)
        self._files.append(path)
        for buffer in content:
            digest.update(buffer)
        return StoredFile(name, sum(map(len, content)), digest.hexdigest())

    def _refuse_another_model(self, delta: Weights) -> None:
        if self._shapes is None:
            raise ValueError("an update was recorded before any broadcast")
        if shapes_of(delta) != self._shapes:
            raise ValueError(
                f"the update's tensors {shapes_of(delta)} are not those of the broadcast, "
                f"{dict(self._shapes)}"
            )


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    for name, value in metrics.items():
        if not isfinite(value):
            raise ValueError(f"the metric {name!r} is {value}: remove it")
    return dict(metrics)
