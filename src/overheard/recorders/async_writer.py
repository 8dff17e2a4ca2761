"""Asynchronous writing of a transcript, which never interrupts the recorded run."""

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import manifest_path, path_exists, transcript_path
from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.purge_note import find_purge, is_interrupted
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.run_end import mark_end
from overheard.core.errors import AuditError, OutputError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MessageBody,
    Timestamps,
    UnstoredKind,
    UnstoredMessage,
    Update,
    Weights,
)
from overheard.core.parties import Party
from overheard.disk.direct_writer import DirectWriter
from overheard.disk.folder_lock import lock_folder
from overheard.disk.folders import group_number, make_new_folder, make_output_folder
from overheard.disk.writing import write_text
from overheard.recorders.replies.differences import UnstorableError
from overheard.recorders.replies.round_check import RoundCheck
from overheard.recorders.run_info import RunInfo

MAX_PENDING_BYTES = 2**30
"""Most bytes of messages that may wait to be written; then the run waits for the disk."""

MAX_PENDING_CALLS = 100_000
"""Most messages that may wait to be written, of any size; beyond that the recording stops."""

MAX_WAIT = 120.0
"""Seconds that a run waits for the disk, all waits together; then messages are given up."""

MAX_END_WAIT = 120.0
"""Seconds that the end of a run waits for the disk; then what is left is given up."""

MAX_LIST_WAIT = 60.0
"""Seconds that the end of a run waits until the messages that were given up are listed."""

CLOSE_TIMEOUT = 1.0
"""Seconds to wait for the end of the writer thread."""

TOO_SLOW = "the disk was too slow"
"""Why a message that was given up is not recorded."""

_LOG = logging.getLogger("overheard")


@final
class AsyncWriter:
    """Writes messages to a run's folder, on its own thread.

    Each call returns at once, unless more than `MAX_PENDING_BYTES` bytes wait. An error such as
    a full disk ends the recording with a warning (see `stopped`), but never the run. Committed
    rounds stay readable.

    A slow or hanging disk delays the run by at most five minutes in all: `MAX_WAIT` seconds
    while it goes on, summed over all calls, and `MAX_END_WAIT` and `MAX_LIST_WAIT` at its end.
    A message that does not fit after that is given up: it is recorded as one that is not
    stored, since the disk was too slow, and the recording goes on.

    A message whose content cannot be recorded, for example with NaN, with an impossible number
    of examples or with tensors of another model than the broadcast, is recorded as one that is
    not stored, with the reason. So no party can end the recording of the others.

    Each round is checked as it is written: if its replies do not lead to the next broadcast as
    they are stored, a warning says so once, with what to state to the recorder.

    If it is dropped without `close`, or the program ends, pending messages are written first.

    Args:
        folder: folder for the run. If it has a transcript already, the run goes to a new folder
            beside it: `NAME-2`, `NAME-3`, ...
        run_info: metadata of the run.
        is_resumed: whether to continue a transcript of the same run in this folder.
        ends_run: whether the run is over when this object is closed or dropped, or its
            recording stops; the transcript then says so. False where the same run is opened
            again for each message.
        log: the logger that is told the folder when the recording begins.
        group: name or number of a group that may read the recording, whose auditor is another
            user; None = only the user who records may.

    Raises:
        OutputError: if there is no such group.

    """

    def __init__(
        self,
        folder: Path,
        run_info: RunInfo,
        *,
        is_resumed: bool = False,
        ends_run: bool = True,
        log: logging.Logger = _LOG,
        group: str | int | None = None,
    ) -> None:
        if group is not None:
            group_number(group)
        self._queue = _Queue(
            folder, run_info, is_resumed=is_resumed, ends_run=ends_run, log=log, group=group
        )
        # A daemon, so that a hanging disk does not keep the program from ending. The thread
        # refers to the queue only, so that this object can be garbage-collected.
        writer = threading.Thread(target=self._queue.run, name="overheard-writer", daemon=True)
        writer.start()
        self._leave = weakref.finalize(self, self._queue.close, writer)

    @property
    def folder(self) -> Path:
        """Folder of the recording; it may change until the first message."""
        return self._queue.folder

    @property
    def stopped(self) -> str | None:
        """Why the recording stopped; None = it has not."""
        return self._queue.stopped

    def begin_round(self, parties: Sequence[Party]) -> None:
        """Begin the next round, and close the previous one.

        Args:
            parties: parties known to take part; the manifest lists those of the first round.

        """
        self._queue.put(partial(self._queue.begin_round, tuple(parties)), 0)

    def write(
        self,
        sender: Party,
        readers: frozenset[Party],
        body: Callable[[], MessageBody],
        *,
        times: Timestamps | None = None,
        size: int = 0,
    ) -> None:
        """Write a message of the open round.

        Args:
            sender: the sender.
            readers: other parties that can read it.
            body: makes the message body; called on the writer thread, so that conversions do
                not delay the run. The data that it refers to must not change any more.
            times: times of the message.
            size: bytes that `body` keeps in memory until it is called.

        """
        queue = self._queue
        call = partial(queue.write, sender, readers, body, times)
        queue.put(call, size, partial(queue.write, sender, readers, _give_up, times))

    def commit(self) -> None:
        """Commit the messages so far; more messages of the round may follow."""
        self._queue.put(self._queue.commit, 0)

    def write_extra_file(self, name: str, text: str) -> None:
        """Write a file beside the transcript, once the run has a message."""
        self._queue.put(partial(self._queue.write_extra_file, name, text), 0)

    def stop(self, error: Exception) -> None:
        """Stop the recording because of an error, with a warning; keep what was committed."""
        self._queue.stop(_describe_error(error))

    def close(self) -> None:
        """Write pending messages, and end."""
        self._leave()


def claim_folder(folder: Path, group: str | int | None = None) -> Path:
    """Make the folder of a new run: this one, or the first free `NAME-2`, `NAME-3`, ...

    A folder is taken by whoever makes `transcript` in it, even if nothing is recorded yet. So
    of two runs that begin at once, each has its own folder. One whose purge was interrupted
    stays as it is, as finishing the purge would remove what the new run stores meanwhile.

    Args:
        folder: the folder that the user named.
        group: the group that may read it, see `make_output_folder`.

    Raises:
        OutputError: if it cannot be made.

    """
    number, free, why = 1, folder, ""
    make_output_folder(free, group)
    while found := _why_taken(free):
        why = why or found
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
        make_output_folder(free, group)
    if why:
        _LOG.warning("overheard: %s; this run goes to %s", why, free)
    return free


def _why_taken(folder: Path) -> str:
    """Take a folder for a run; return why that is not possible, or "" once it is taken."""
    try:
        if is_interrupted(folder):
            return find_purge(folder)
    # The note of a purge is damaged, so that nobody knows whether it was interrupted.
    except OutputError as error:
        return str(error)
    if make_new_folder(transcript_path(folder), inside=folder):
        return ""
    return f"{folder} has a recording already"


@dataclass(frozen=True, slots=True)
class _QueuedCall:
    """A call for the writer thread.

    Args:
        call: the call.
        size: the bytes that it keeps in memory.
        fallback: what lists its message if it is given up; None = it keeps no message.

    """

    call: Callable[[], None]
    size: int
    fallback: Callable[[], None] | None = None


@final
class _Queue:
    """State shared by the run's threads and the writer thread."""

    def __init__(
        self,
        folder: Path,
        run_info: RunInfo,
        *,
        is_resumed: bool,
        ends_run: bool,
        log: logging.Logger,
        group: str | int | None,
    ) -> None:
        self.folder = folder
        self._group = group
        self._ends_run = ends_run
        self._log = log
        self.stopped: str | None = None
        self._facts = run_info
        self._goes_on = is_resumed
        self._tasks = deque[_QueuedCall]()
        self._pending = 0
        self._waited = 0.0
        self._given_up = 0
        self._is_left = False
        self._is_over = False
        self._changed = threading.Condition()
        # Used by the writer thread alone.
        self._recorder: Recorder | None = None
        self._parties: tuple[Party, ...] = ()
        self._said: OpenRound | None = None
        self._open = ExitStack()
        self._resumed = ExitStack()
        self._check: RoundCheck | None = None
        self._messages: list[Message] = []

    def put(
        self, call: Callable[[], None], size: int, fallback: Callable[[], None] | None = None
    ) -> None:
        queued = _QueuedCall(call, size, fallback)
        with self._changed:
            if not self._fits(size):
                begin = monotonic()
                self._wait(lambda: self._fits(size), MAX_WAIT - self._waited)
                self._waited += monotonic() - begin
                if not self._fits(size):
                    queued = self._give_up(queued)
            if self._is_left or self._is_over:
                return
            if len(self._tasks) >= MAX_PENDING_CALLS:
                self.stop(f"{len(self._tasks):,} messages wait for {self.folder}")
                return
            self._tasks.append(queued)
            self._pending += queued.size
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        """Return whether a call may wait; one above the limit may if nothing else waits."""
        return not size or not self._pending or self._pending + size <= MAX_PENDING_BYTES

    def _give_up(self, queued: _QueuedCall) -> _QueuedCall:
        """Return the call that lists a message, in place of the one that records it."""
        # A message without content takes no time to write.
        if queued.fallback is None or not queued.size:
            return queued
        if not self._given_up:
            _LOG.warning(
                "overheard: the disk of %s is too slow: messages that do not fit into memory "
                "are listed, and their content is not recorded; the run waits for it no longer",
                self.folder,
            )
        self._given_up += 1
        return _QueuedCall(queued.fallback, 0)

    def close(self, writer: threading.Thread) -> None:
        with self._changed:
            self._is_left = True
            self._changed.notify_all()
            # Garbage may be collected on any thread, including the writer thread.
            if threading.current_thread() is writer:
                return
            self._wait(lambda: False, MAX_END_WAIT)
            if not self._is_over:
                self._tasks = deque(map(self._give_up, self._tasks))
                self._wait(lambda: False, MAX_LIST_WAIT)
            if not self._is_over:
                waited = MAX_END_WAIT + MAX_LIST_WAIT
                self.stop(f"nothing could be written to {self.folder} for {waited:g} s")
        # A thread that frees tensors while the program ends would abort it.
        writer.join(CLOSE_TIMEOUT)

    def stop(self, why: str) -> None:
        with self._changed:
            if self._is_over or self.stopped is not None:
                return
            self.stopped = why
            self._tasks.clear()
        # Logged before waiting threads continue, as they may end the program.
        _LOG.warning("overheard: the recording stops here, the run continues: %s", why)
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def run(self) -> None:
        try:
            while (task := self._next()) is not None:
                task.call()
                with self._changed:
                    self._pending -= task.size
                    self._changed.notify_all()
                # Freed before waiting for the next call, as its data may be large.
                del task
            if self.stopped is None:
                self._close_round()
                if self._check is not None:
                    self._check.warn()
            self._mark_end()
        # No error may reach the run, and none may end the thread without a word.
        except BaseException as error:
            self.stop(_describe_error(error))
        finally:
            self._resumed.close()
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def begin_round(self, parties: tuple[Party, ...]) -> None:
        self._close_round()
        self._said, self._parties = None, parties

    def write(
        self,
        sender: Party,
        readers: frozenset[Party],
        body: Callable[[], MessageBody],
        times: Timestamps | None,
    ) -> None:
        try:
            content, left_out = _drop_non_floating(body())
        # The error comes from the content, not from the recording: whatever it is, such as
        # SystemExit, since Ctrl-C is raised in the main thread alone.
        except BaseException as error:
            content, left_out = make_unstored(error), ()
        round_ = self._round(left_out)
        message = Message(self._number(), sender, readers, content, times)
        try:
            self._messages.append(round_.record(message))
        # The error of the disk, or of the folder.
        except OutputError:
            raise
        # Any other error comes from the content.
        except BaseException as error:
            self._messages.append(round_.record(replace(message, body=make_unstored(error))))

    def _close_round(self) -> None:
        """Commit the open round, and check it."""
        self._open.close()
        if self._check is not None and self._messages:
            self._check.add(self._messages)
        self._messages = []

    def commit(self) -> None:
        if self._said is not None:
            self._said.close()

    def write_extra_file(self, name: str, text: str) -> None:
        # Without a message it is not known which folder is free.
        if self._recorder is not None:
            write_text(self.folder / name, text, inside=self.folder)

    def _wait(self, is_met: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition or the end of the recording, for so many seconds at most."""
        self._changed.wait_for(lambda: self._is_over or is_met(), max(0.0, seconds))

    def _round(self, left_out: tuple[str, ...]) -> OpenRound:
        """Return the open round; its first message opens it, and the run's first the folder."""
        if self._recorder is None:
            run_info = self._facts
            manifest = Manifest(
                run_info.task,
                run_info.model,
                run_info.recipe,
                run_info.defenses,
                self._parties,
                run_info.rounds,
                participation=run_info.participation,
                sampling=run_info.sampling,
                framework=run_info.framework,
                left_out=left_out,
                are_defenses_stated=run_info.are_defenses_stated,
                algorithm=run_info.algorithm,
            )
            if not self._goes_on:
                self.folder = claim_folder(self.folder, self._group)
                self._log.info("overheard: this run is recorded to %s", self.folder.absolute())
            else:
                make_output_folder(self.folder, self._group)
                self._resumed.enter_context(lock_folder(self.folder))
                if is_interrupted(self.folder):
                    raise OutputError(find_purge(self.folder))
                if path_exists(manifest_path(transcript_path(self.folder))):
                    # The tensors to omit were determined by the run's first model.
                    stored = read_manifest(self.folder)
                    manifest = replace(
                        manifest, left_out=stored.left_out, parties=stored.parties
                    )
            self._recorder = Recorder(self.folder, manifest, direct_writer=DirectWriter())
            # A resumed recording is opened for single messages.
            self._check = None if self._goes_on else RoundCheck(manifest)
        if self._said is None:
            self._said = self._open.enter_context(self._recorder.open_round())
        return self._said

    def _mark_end(self) -> None:
        if self._ends_run and self._recorder is not None:
            mark_end(self.folder)
            rounds = self._recorder.committed_rounds()
            self._log.info(
                "overheard: the recording ends after %d %s in %s",
                rounds,
                "round" if rounds == 1 else "rounds",
                self.folder.absolute(),
            )
            if self._given_up:
                self._log.warning(
                    "overheard: the run waited %.0f s for the disk; %d messages are listed "
                    "without their content, as it was too slow",
                    self._waited,
                    self._given_up,
                )

    def _number(self) -> int:
        assert self._recorder is not None, "a round is open"
        return self._recorder.committed_rounds()

    def _next(self) -> _QueuedCall | None:
        """Return the next call; None when no more calls will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self._is_left or self._is_over)
            if self._is_over or not self._tasks:
                return None
            return self._tasks.popleft()


def _give_up() -> UnstoredMessage:
    return UnstoredMessage("other", TOO_SLOW)


def make_unstored(error: BaseException) -> UnstoredMessage:
    """Return what is stored in place of a message whose content raised an error."""
    kind: UnstoredKind = "weights" if isinstance(error, ValueError) else "other"
    if isinstance(error, UnstorableError):
        kind = error.kind
    return UnstoredMessage(kind, _describe_error(error))


def _describe_error(error: BaseException) -> str:
    """Describe an error on one line; its text may quote what a party sent."""
    text = printable_excerpt(" ".join(str(error).split()))
    if isinstance(error, AuditError | ValueError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _drop_non_floating(body: MessageBody) -> tuple[MessageBody, tuple[str, ...]]:
    """Load a message's tensors, and drop those that are not floating-point."""
    match body:
        case Broadcast():
            weights, left_out = _split_floating(body.weights)
            return replace(body, weights=weights), left_out
        case Update() | Aggregate():
            delta, left_out = _split_floating(body.delta)
            return replace(body, delta=delta), left_out
        case _:
            return body, ()


def _split_floating(weights: Weights) -> tuple[Weights, tuple[str, ...]]:
    tensors = dict(weights)
    floating = {name: one for name, one in tensors.items() if one.is_floating_point()}
    return floating, tuple(name for name in tensors if name not in floating)
