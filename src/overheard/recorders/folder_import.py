"""Import of a run that any framework exported as weights by round and client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.manifest import Manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.weights import tensor_shapes
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.messages import Broadcast, Message, MissingReply, Update, Weights
from overheard.core.parties import SERVER, Party
from overheard.recorders.exported_run import (
    ExportedPart,
    ExportedRound,
    ExportedRun,
    exported_run,
)
from overheard.recorders.exported_weights import read_exported

Kind = Literal["weights", "differences"]
"""Content of clients' files: their weights, or differences from the broadcast weights."""

TO_SERVER = frozenset({SERVER})

OnFile = Callable[[str, int, int], None]
"""Called for each message with its description, the number written, and the total."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Summary of an import.

    Args:
        rounds: number of rounds with replies, without the closing one.
        clients: number of clients.
        updates: number of replies with weights.
        missing: number of missing replies.
        left_out: names of the tensors that the transcript omits.

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

    One message is in memory at a time. All names are checked before anything is written. If an
    import is stopped or fails, its output is a complete transcript of the earlier rounds, and
    the same import continues from there.

    Args:
        folder: folder with a subfolder for each round; see `docs/import.md`.
        out: folder for the run.
        kind: content of clients' files; global models are always weights.
        on_file: called with the progress.

    Raises:
        TranscriptError: if a file cannot be imported, with what to do.
        OutputError: if `out` has another run, or cannot be written to.

    """
    _refuse_nested(folder, out)
    run = exported_run(folder)
    recorder = Recorder(out, _manifest(run))
    done, ticker = recorder.committed_rounds(), _Ticker(on_file, run.messages)
    if done > len(run.rounds):
        raise _another_import(out, f"it has {done} rounds")
    for index in range(done):
        _refuse_another_import(run, index, kind, out)
        ticker.tick(f"round {index}", 1 + len(run.round(index).parts))
    for index in range(done, len(run.rounds)):
        with recorder.open_round() as open_round:
            _say(run, index, kind, open_round, ticker)
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
        raise TranscriptError(
            f"{run.place}: {printable_excerpt(str(error))}: correct it"
        ) from error


def _say(
    run: ExportedRun, index: int, kind: Kind, open_round: OpenRound, ticker: "_Ticker"
) -> None:
    exported = run.round(index)
    start = _model(run, exported)
    open_round.record(Message(index, SERVER, exported.readers, Broadcast(start)))
    ticker.tick(f"round {exported.number}")
    for answer in exported.parts:
        message = Message(index, answer.who, TO_SERVER, _body(run, answer, kind, start))
        try:
            open_round.record(message)
        except ValueError as error:
            raise TranscriptError(
                f"{answer.path}: {printable_excerpt(str(error))}: export it again, and check that it "
                f"contains {kind}"
            ) from error
        ticker.tick(f"round {exported.number}")


def _model(run: ExportedRun, exported: ExportedRound) -> Weights:
    return read_exported(exported.model, run.folder, run.shapes, run.left_out).weights


def _body(
    run: ExportedRun, answer: ExportedPart, kind: Kind, start: Weights
) -> Update | MissingReply:
    if answer.path is None:
        return MissingReply(answer.missing)
    delta = read_exported(answer.path, run.folder, run.shapes, run.left_out).weights
    if kind == "weights":
        delta = {name: _wide(tensor) - _wide(start[name]) for name, tensor in delta.items()}
    return Update(delta, answer.examples, answer.metrics)


def _wide(tensor: Tensor) -> Tensor:
    """Widen 16-bit numbers to 32 bits, so that differences are not rounded."""
    return tensor.float() if tensor.element_size() < 4 else tensor


def _refuse_another_import(run: ExportedRun, index: int, kind: Kind, out: Path) -> None:
    """Refuse to continue if a round that is already imported does not match these files.

    All metadata is compared, but only the weights of the broadcast and of the first update, as
    comparing all would take as long as a new import.
    """
    exported, (first, *others) = run.round(index), read_round(out, index)
    if not isinstance(first.body, Broadcast) or first.readers != exported.readers:
        raise _another_import(
            out, f"the broadcast of round {exported.number} has other receivers"
        )
    start = _model(run, exported)
    if not _are_equal(first.body.weights, start):
        raise _another_import(out, f"round {exported.number} has another global model")
    if [_in_clear(message) for message in others] != [
        _announced(answer) for answer in exported.parts
    ]:
        raise _another_import(out, f"round {exported.number} has other replies")
    for message, answer in zip(others, exported.parts, strict=True):
        if isinstance(message.body, Update):
            body = _body(run, answer, kind, start)
            assert isinstance(body, Update), "compared above"
            if not _are_equal(message.body.delta, body.delta):
                raise _another_import(
                    out, f"round {exported.number} has other weights of {answer.who}"
                )
            break


InClear = tuple[Party, str | None, int | None, Mapping[str, float]]


def _in_clear(message: Message) -> InClear:
    body = message.body
    if isinstance(body, MissingReply):
        return message.sender, body.reason, None, {}
    assert isinstance(body, Update), "an import writes nothing else"
    return message.sender, None, body.examples, body.metrics


def _announced(answer: ExportedPart) -> InClear:
    missing = answer.missing if answer.path is None else None
    return answer.who, missing, answer.examples, answer.metrics


def _are_equal(stored: Weights, weights: Weights) -> bool:
    return tensor_shapes(stored) == tensor_shapes(weights) and all(
        torch.equal(stored[name], tensor.float()) for name, tensor in weights.items()
    )


def _another_import(out: Path, why: str) -> OutputError:
    return OutputError(
        f"{out} contains another import ({why}): choose another folder, or remove this one to "
        "start again"
    )


def _refuse_nested(folder: Path, out: Path) -> None:
    import_path, out_path = folder.resolve(), out.resolve()
    if out_path.is_relative_to(import_path):
        raise OutputError(
            f"{out} is inside {folder}, from which is imported: choose a folder outside it"
        )


@final
class _Ticker:
    """Counts messages, and reports the progress."""

    def __init__(self, on_file: OnFile | None, total: int) -> None:
        self._on_file, self._total, self._done = on_file, total, 0

    def tick(self, what: str, messages: int = 1) -> None:
        self._done += messages
        if self._on_file is not None:
            self._on_file(what, self._done, self._total)
