"""Writes a run's messages to its folder as they are sent."""

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
    """A run's folder, open for the rounds that it lacks.

    Every message is in the folder, whole, as soon as it was sent; a round counts once it is
    closed, and from then on outlasts a power cut. Whatever a killed run left of an open round
    is dropped and said again.

    >>> from tempfile import TemporaryDirectory
    >>> from overheard.archive.manifest import Manifest
    >>> from overheard.core.parties import SERVER, client
    >>> from overheard.core.task import Task
    >>> manifest = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER,), rounds=1)
    >>> with TemporaryDirectory() as folder:
    ...     recorder = Recorder(Path(folder), manifest)
    ...     with recorder.round() as said:
    ...         _ = said.send(Message(0, client(3), frozenset({SERVER}), Missing("late")))
    ...     recorder.committed()
    1
    """

    def __init__(
        self, folder: Path, manifest: Manifest, *, past_cache: PastCache | None = None
    ) -> None:
        """Start a run in this folder, or go on with the same run.

        Args:
            folder: of the run.
            manifest: of the run.
            past_cache: what writes weights, where nobody reads them soon; None = as ever.

        Raises:
            OutputError: if the folder holds another run, or cannot be written to; nothing in
                it is then changed.

        """
        self._transcript = folder / "transcript"
        self._past_cache = past_cache
        self._committed = begin(folder, manifest)

    def committed(self) -> int:
        """How many rounds are closed; also the number of the round to come."""
        return self._committed

    @contextmanager
    def round(self) -> Iterator["OpenRound"]:
        """Open the next round, and close it if all went well."""
        number = self._committed
        folder = round_folder(self._transcript, number)
        try:
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as error:
            raise output_error(folder, error) from error
        said = OpenRound(self._transcript, number, self._past_cache)
        yield said
        said.close()
        self._committed += 1


@final
class OpenRound:
    """The round that is being said; only `Recorder.round` opens one."""

    def __init__(
        self, transcript: Path, number: int, past_cache: PastCache | None = None
    ) -> None:
        """Begin with nothing said."""
        self._transcript = transcript
        self._number = number
        self._past_cache = past_cache
        self._lines: list[Line] = []
        self._files: list[Path] = []
        self._shapes: Shapes | None = None

    def send(self, message: Message) -> Message:
        """Write a message; gives it back as a reader will find it, its weights on the disk.

        Raises:
            ValueError: if the message is of another round, names a party unfit for a file,
                holds weights that are not finite, or of another model than was broadcast.
            OutputError: if the folder cannot take it.

        """
        if message.round != self._number:
            raise ValueError(
                f"a message of round {message.round} was sent in round {self._number}"
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
        place = LinePlace(self._transcript, self._number, len(self._lines))
        return message_of(line, place, self._shapes)

    def close(self) -> None:
        """Write down what was said: from then on the round counts.

        What is said afterwards counts when it is closed again.
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
                # Not before: updates of a broadcast that was refused must be refused too.
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
        for piece in content:
            digest.update(piece)
        return StoredFile(name, sum(map(len, content)), digest.hexdigest())

    def _refuse_another_model(self, delta: Weights) -> None:
        if self._shapes is None:
            raise ValueError("an update was sent before any broadcast")
        if shapes_of(delta) != self._shapes:
            raise ValueError(
                f"the update's tensors {shapes_of(delta)} are not those of the broadcast, "
                f"{dict(self._shapes)}"
            )


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    for name, value in metrics.items():
        if not isfinite(value):
            raise ValueError(f"the metric {name!r} is {value}: leave it out")
    return dict(metrics)
