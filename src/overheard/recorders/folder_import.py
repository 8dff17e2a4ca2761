"""Import of a run that any framework exported as weights by round and client."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.manifest import UNTOLD_FRAMEWORK, Manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.run_end import has_ended, mark_end
from overheard.archive.weights import tensor_shapes
from overheard.consistency.check import check_recording
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import state_step
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MissingReply,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, Party
from overheard.disk.folder_lock import lock_folder
from overheard.recorders.export_format import read_run
from overheard.recorders.exported_run import (
    ExportedAggregate,
    ExportedAnswer,
    ExportedRound,
    ExportedRun,
)
from overheard.recorders.exported_weights import read_exported_weights
from overheard.recorders.exports.reply_content import ImportOptions, SavedModel
from overheard.recorders.replies.differences import ReplyKind, read_update

DEFAULT_KIND: ReplyKind = "weights"
"""Content of clients' files if nobody states it."""

TO_SERVER = frozenset({SERVER})

OnProgress = Callable[[str, int, int], None]
"""Called for each message with its description, the number written, and the total."""


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """Summary of an import.

    Args:
        rounds: number of rounds with replies, without the closing one.
        clients: number of clients.
        updates: number of replies with weights.
        missing: number of missing replies.
        left_out: names of the tensors that the transcript omits.
        proof: whether the replies, as they were read, lead from each global model to the next.
        notes: sentences on what else the import leaves out.

    """

    rounds: int
    clients: int
    updates: int
    missing: int
    left_out: tuple[str, ...]
    proof: RecordingProof
    notes: tuple[str, ...] = ()


def import_recording(
    folder: Path,
    out: Path,
    *,
    kind: ReplyKind | None = None,
    rate: float | None = None,
    saved: SavedModel | None = None,
    on_progress: OnProgress | None = None,
) -> ImportSummary:
    """Write the transcript of a run whose weights another framework saved.

    One message is in memory at a time. All names are checked before anything is written. If an
    import is stopped or fails, its output is a complete transcript of the earlier rounds, and
    the same import continues from there. At the end the recording is checked; if it contradicts
    itself, the summary says so, and the recording stays as it is.

    Args:
        folder: folder with a subfolder for each round, or of an experiment of Fed-BioMed; see
            `docs/import.md`.
        out: folder for the run.
        kind: content of clients' files; None = as `about.toml` states, or else weights. Global
            models are always weights.
        rate: the server's learning rate, which multiplies gradients.
        saved: whether the global model in a round's folder was saved before or after the
            aggregation; None = as `about.toml` states, or else before.
        on_progress: called with the progress.

    Raises:
        TranscriptError: if a file cannot be imported, with what to do.
        OutputError: if `out` has another run, another process works there, or it cannot be
            written to.

    """
    _refuse_nested(folder, out)
    run = read_run(folder, ImportOptions(kind, rate, saved))
    manifest = _manifest(run)
    with lock_folder(out):
        _write_rounds(
            run, Recorder(out, manifest), out, _Progress(on_progress, run.message_count)
        )
    answered = run.round_count - run.is_closed
    return ImportSummary(
        answered,
        len(run.clients),
        run.update_count,
        run.missing_count,
        run.left_out,
        check_recording(out, state_step(manifest)),
        run.notes,
    )


def _manifest(run: ExportedRun) -> Manifest:
    about = run.info
    try:
        return Manifest(
            about.task,
            about.model,
            about.recipe,
            about.defenses or (),
            (SERVER, *run.clients),
            about.rounds,
            participation=about.participation,
            sampling=about.sampling,
            framework=about.framework or UNTOLD_FRAMEWORK,
            left_out=run.left_out,
            are_defenses_stated=about.defenses is not None,
        )
    except ValueError as error:
        raise TranscriptError(
            f"{run.info_path}: {printable_excerpt(str(error))}: correct it"
        ) from error


def _write_rounds(run: ExportedRun, recorder: Recorder, out: Path, ticker: "_Progress") -> None:
    """Write the rounds that the folder does not have yet."""
    done = recorder.committed_rounds()
    if done > run.round_count:
        raise _another_import(out, f"it has {done} rounds")
    for index in range(done):
        _refuse_another_import(run, index, out)
        ticker.advance(f"round {index}", 1 + len(run.round(index).answers))
    for index in range(done, run.round_count):
        with recorder.open_round() as open_round:
            _write_round(run, index, open_round, ticker)
    if not has_ended(out):
        mark_end(out)


def _write_round(
    run: ExportedRun, index: int, open_round: OpenRound, ticker: "_Progress"
) -> None:
    exported = run.round(index)
    start = _read_model(run, exported)
    body = Broadcast(start, exported.config)
    try:
        open_round.record(Message(index, SERVER, exported.readers, body))
    except ValueError as error:
        raise TranscriptError(
            f"{exported.model}: with the settings that were sent, it cannot be recorded: "
            f"{printable_excerpt(str(error))}: export it again with fewer"
        ) from error
    ticker.advance(f"round {exported.number}")
    for answer in exported.answers:
        message = Message(index, answer.client, TO_SERVER, _read_answer(run, answer, start))
        try:
            open_round.record(message)
        except ValueError as error:
            place = answer.path or f"{run.folder}: the missing reply of {answer.client}"
            raise TranscriptError(
                f"{place}: {printable_excerpt(str(error))}: export it again, and check "
                f"that it contains {run.info.kind or DEFAULT_KIND}"
            ) from error
        ticker.advance(f"round {exported.number}")
    if exported.aggregate is not None:
        mean = _read_aggregate(run, exported.aggregate, start)
        open_round.record(Message(index, COHORT, TO_SERVER, mean))


def _read_model(run: ExportedRun, exported: ExportedRound) -> Weights:
    return _read_weights(run, exported.model)


def _read_weights(run: ExportedRun, path: Path) -> Weights:
    return run.read_weights(path, run.folder, run.shapes, run.left_out).weights


def _read_aggregate(run: ExportedRun, exported: ExportedAggregate, start: Weights) -> Aggregate:
    delta = read_update(_read_weights(run, exported.path), start).delta
    return Aggregate(delta, exported.cohort, exported.examples)


def _read_answer(
    run: ExportedRun, answer: ExportedAnswer, start: Weights
) -> Update | MissingReply:
    if answer.path is None:
        return MissingReply(answer.missing_reason)
    kind = run.info.kind or DEFAULT_KIND
    if answer.start is not None and kind == "weights":
        start = _read_weights(run, answer.start)
    delta = read_update(_read_reply(run, answer.path), start, kind, run.info.rate).delta
    return Update(delta, answer.examples, answer.metrics)


def _read_reply(run: ExportedRun, path: Path) -> Weights:
    """Return the numbers of a client's file, decoded if they are whole-number codes."""
    codes = run.info.codes
    if codes is None:
        return _read_weights(run, path)
    found = read_exported_weights(path, run.folder, run.shapes, run.left_out, has_codes=True)
    try:
        return codes.decode(found.weights)
    except ValueError as error:
        raise TranscriptError(
            f"{path}: {printable_excerpt(str(error))}: correct [codes] of {run.info_path.name}"
        ) from error


def _refuse_another_import(run: ExportedRun, index: int, out: Path) -> None:
    """Refuse to continue if a round that is already imported does not match these files.

    All metadata is compared, but only the weights of the broadcast, of the first update and of
    updates that began from another model, as comparing all would take as long as a new import.
    """
    exported, (first, *others) = run.round(index), read_round(out, index)
    if not isinstance(first.body, Broadcast) or first.readers != exported.readers:
        raise _another_import(
            out, f"the broadcast of round {exported.number} has other receivers"
        )
    start = _read_model(run, exported)
    if not _are_equal(first.body.weights, start):
        raise _another_import(out, f"round {exported.number} has another global model")
    replies = [one for one in others if not isinstance(one.body, Aggregate)]
    if [_recorded_answer(message) for message in replies] != [
        _expected_answer(answer) for answer in exported.answers
    ] or [one.body.cohort for one in others if isinstance(one.body, Aggregate)] != (
        [] if exported.aggregate is None else [exported.aggregate.cohort]
    ):
        raise _another_import(out, f"round {exported.number} has other replies")
    is_first = True
    for message, answer in zip(replies, exported.answers, strict=True):
        if isinstance(message.body, Update) and (is_first or answer.start is not None):
            body = _read_answer(run, answer, start)
            assert isinstance(body, Update), "compared above"
            if not _are_equal(message.body.delta, body.delta):
                raise _another_import(
                    out, f"round {exported.number} has other weights of {answer.client}"
                )
            is_first = False


AnswerInClear = tuple[Party, str | None, int | None, Mapping[str, float]]


def _recorded_answer(message: Message) -> AnswerInClear:
    body = message.body
    if isinstance(body, MissingReply):
        return message.sender, body.reason, None, {}
    assert isinstance(body, Update), "an import writes nothing else"
    return message.sender, None, body.examples, body.metrics


def _expected_answer(answer: ExportedAnswer) -> AnswerInClear:
    missing = answer.missing_reason if answer.path is None else None
    return answer.client, missing, answer.examples, answer.metrics


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
    # `Path.resolve` fails for a link to itself.
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(folder)):
        raise OutputError(
            f"{out} is inside {folder}, from which is imported: choose a folder outside it"
        )


@final
class _Progress:
    """Counts messages, and reports the progress."""

    def __init__(self, on_file: OnProgress | None, total: int) -> None:
        self._on_file, self._total, self._done = on_file, total, 0

    def advance(self, what: str, messages: int = 1) -> None:
        self._done += messages
        if self._on_file is not None:
            self._on_file(what, self._done, self._total)
