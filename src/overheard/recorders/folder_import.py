"""Makes a run's folder of a folder of weights by round and client, from any framework."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import torch
from torch import Tensor

from overheard.archive.manifest import Manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.spelled import spelled
from overheard.archive.weights import shapes_of
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.messages import Broadcast, Message, Missing, Update, Weights
from overheard.core.parties import SERVER, Party
from overheard.recorders.exported_run import (
    ExportedPart,
    ExportedRound,
    ExportedRun,
    exported_run,
)
from overheard.recorders.exported_weights import read_exported

Kind = Literal["weights", "differences"]
"""What a client's file holds: its weights, or what it would add to those it was sent."""

TO_SERVER = frozenset({SERVER})

OnFile = Callable[[str, int, int], None]
"""Told of each message: what it is, how many are written, and how many there are."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What a folder came to.

    Args:
        rounds: with answers; the closing one is not counted.
        clients: who take part.
        updates: answers with weights.
        missing: answers that did not come.
        left_out: tensors that are not in the transcript.

    """

    rounds: int
    clients: int
    updates: int
    missing: int
    left_out: tuple[str, ...]


def import_recording(
    folder: Path, out: Path, *, kind: Kind = "weights", on_file: OnFile | None = None
) -> Imported:
    """Write the transcript of a run whose weights another framework saved.

    One message is in memory at a time. All names are looked at before anything is written;
    what was written when an import is stopped, or meets a file that cannot be read, is a whole
    transcript of the rounds before, and the same import goes on there.

    Args:
        folder: holds a folder for each round, as `docs/import.md` tells.
        out: for the run.
        kind: what clients' files hold; the global models are weights always.
        on_file: told how far it has come.

    Raises:
        TranscriptError: naming the file that cannot be imported, and the mend.
        OutputError: if `out` holds another run, or cannot be written to.

    """
    _refuse_nested(folder, out)
    run = exported_run(folder)
    recorder = Recorder(out, _manifest(run))
    done, ticker = recorder.committed(), _Ticker(on_file, run.messages)
    if done > len(run.rounds):
        raise _another_import(out, f"it has {done} rounds")
    for index in range(done):
        _refuse_another_import(run, index, kind, out)
        ticker.tick(f"round {index}", 1 + len(run.round(index).parts))
    for index in range(done, len(run.rounds)):
        with recorder.round() as said:
            _say(run, index, kind, said, ticker)
    answered = len(run.rounds) - run.is_closed
    return Imported(answered, len(run.clients), run.updates, run.missing, run.left_out)


def _manifest(run: ExportedRun) -> Manifest:
    about = run.about
    try:
        return Manifest(
            about.task,
            about.model,
            about.recipe,
            about.defenses,
            (SERVER, *run.clients),
            about.rounds,
            participation=about.participation,
            framework=about.framework or "not told",
            left_out=run.left_out,
        )
    except ValueError as error:
        raise TranscriptError(f"{run.place}: {spelled(str(error))}: mend it there") from error


def _say(run: ExportedRun, index: int, kind: Kind, said: OpenRound, ticker: "_Ticker") -> None:
    now = run.round(index)
    start = _model(run, now)
    said.send(Message(index, SERVER, now.readers, Broadcast(start)))
    ticker.tick(f"round {now.number}")
    for part in now.parts:
        message = Message(index, part.who, TO_SERVER, _body(run, part, kind, start))
        try:
            said.send(message)
        except ValueError as error:
            raise TranscriptError(
                f"{part.path}: {spelled(str(error))}: export it anew; does it hold {kind}?"
            ) from error
        ticker.tick(f"round {now.number}")


def _model(run: ExportedRun, now: ExportedRound) -> Weights:
    return read_exported(now.model, run.folder, run.shapes, run.left_out).weights


def _body(run: ExportedRun, part: ExportedPart, kind: Kind, start: Weights) -> Update | Missing:
    if part.path is None:
        return Missing(part.missing)
    delta = read_exported(part.path, run.folder, run.shapes, run.left_out).weights
    if kind == "weights":
        delta = {name: _wide(tensor) - _wide(start[name]) for name, tensor in delta.items()}
    return Update(delta, part.examples, part.metrics)


def _wide(tensor: Tensor) -> Tensor:
    """So that the difference of two numbers of 16 bits loses nothing."""
    return tensor.float() if tensor.element_size() < 4 else tensor


def _refuse_another_import(run: ExportedRun, index: int, kind: Kind, out: Path) -> None:
    """See that a round that stands there already was made of these files.

    All that travelled in clear is compared and, lest it takes as long as to import anew, of the
    weights those of the broadcast and of the first update.
    """
    now, (first, *others) = run.round(index), read_round(out, index)
    if not isinstance(first.body, Broadcast) or first.readers != now.readers:
        raise _another_import(out, f"round {now.number} was sent to others")
    start = _model(run, now)
    if not _are_equal(first.body.weights, start):
        raise _another_import(out, f"round {now.number} has another global model")
    if [_in_clear(message) for message in others] != [_announced(part) for part in now.parts]:
        raise _another_import(out, f"round {now.number} has other answers")
    for message, part in zip(others, now.parts, strict=True):
        if isinstance(message.body, Update):
            body = _body(run, part, kind, start)
            assert isinstance(body, Update), "as announced"
            if not _are_equal(message.body.delta, body.delta):
                raise _another_import(
                    out, f"round {now.number} has other weights of {part.who}"
                )
            break


InClear = tuple[Party, str | None, int | None, Mapping[str, float]]


def _in_clear(message: Message) -> InClear:
    body = message.body
    if isinstance(body, Missing):
        return message.sender, body.reason, None, {}
    assert isinstance(body, Update), "an import writes nothing else"
    return message.sender, None, body.examples, body.metrics


def _announced(part: ExportedPart) -> InClear:
    missing = part.missing if part.path is None else None
    return part.who, missing, part.examples, part.metrics


def _are_equal(there: Weights, here: Weights) -> bool:
    return shapes_of(there) == shapes_of(here) and all(
        torch.equal(there[name], tensor.float()) for name, tensor in here.items()
    )


def _another_import(out: Path, why: str) -> OutputError:
    return OutputError(
        f"{out} holds another import ({why}): choose another folder, or remove this one to "
        "start anew"
    )


def _refuse_nested(folder: Path, out: Path) -> None:
    here, there = folder.resolve(), out.resolve()
    if there.is_relative_to(here):
        raise OutputError(
            f"{out} lies in {folder}, which is read: choose a folder for the run elsewhere"
        )


@final
class _Ticker:
    """Counts messages, for whoever is to be told."""

    def __init__(self, on_file: OnFile | None, total: int) -> None:
        self._on_file, self._total, self._done = on_file, total, 0

    def tick(self, what: str, messages: int = 1) -> None:
        self._done += messages
        if self._on_file is not None:
            self._on_file(what, self._done, self._total)
