"""Writes down somebody else's run as it goes on, and never stops it."""

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import final

from overheard.archive.layout import is_there, manifest_path
from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.past_cache import PastCache
from overheard.archive.recorder import OpenRound, Recorder
from overheard.core.errors import AuditError
from overheard.core.messages import (
    Aggregate,
    Body,
    Broadcast,
    Message,
    Missing,
    Times,
    Update,
    Weights,
)
from overheard.core.parties import Party
from overheard.recorders.facts import Facts

MOST_PENDING = 2**30
"""Bytes of weights that may wait to be written; beyond them the run waits for the disk."""

PATIENCE = 120.0
"""Seconds without a message written after which a disk is taken for dead."""

LAST = 1.0
"""Seconds that the writing thread has to end in when all is written, or the disk is dead."""

_LOG = logging.getLogger("overheard")


@final
class Scribe:
    """Writes what it is told to a run's folder, on a thread of its own.

    Each call comes back at once, unless more than `MOST_PENDING` bytes wait. Whatever goes
    wrong - a full disk, a folder that cannot be written to - ends the recording with a warning
    (`stopped` says which), never the run. What was committed before then can be read. A disk
    that does not answer holds the run up for `PATIENCE` once, and no more.

    A message that cannot be recorded as it is, such as weights that are NaN or of another model
    than was broadcast, is recorded as missing, with the reason.

    Dropped without `close`, or at the end of the program, it writes all that waits first.

    Args:
        folder: for the run. If it holds a transcript already, the run goes to a new folder
            beside it: `NAME-2`, `NAME-3`, ...
        facts: about the run.
        goes_on: whether a transcript in this folder is of this very run, and is gone on with.

    """

    def __init__(self, folder: Path, facts: Facts, *, goes_on: bool = False) -> None:
        self._desk = _Desk(folder, facts, goes_on=goes_on)
        # A daemon, since a disk that hangs must not keep the program from ending. It knows the
        # desk alone, so that this object can be dropped.
        writer = threading.Thread(target=self._desk.work, name="overheard-scribe", daemon=True)
        writer.start()
        self._leave = weakref.finalize(self, self._desk.leave, writer)

    @property
    def folder(self) -> Path:
        """Where the run is written, as far as is known before its first message."""
        return self._desk.folder

    @property
    def stopped(self) -> str | None:
        """Why nothing more is recorded; None while all is well."""
        return self._desk.stopped

    def begin(self, parties: Sequence[Party]) -> None:
        """Open the next round; the one before is closed.

        Args:
            parties: who is known to take part; those of the first round go to the manifest.

        """
        self._desk.put(partial(self._desk.begin, tuple(parties)), 0)

    def say(
        self,
        sender: Party,
        readers: frozenset[Party],
        body: Callable[[], Body],
        *,
        times: Times | None = None,
        size: int = 0,
    ) -> None:
        """Put down a message of the open round.

        Args:
            sender: who said it.
            readers: who else can read it.
            body: gives what was said; called on the writing thread, so that to turn arrays
                into tensors costs the run nothing. What it holds must not change any more.
            times: when.
            size: bytes that the call of `body` keeps in memory until it is made.

        """
        self._desk.put(partial(self._desk.say, sender, readers, body, times), size)

    def commit(self) -> None:
        """Have what was said so far count, though more may be said in this round."""
        self._desk.put(self._desk.commit, 0)

    def stop(self, error: Exception) -> None:
        """Record nothing more because of this, and warn; what was committed stays."""
        self._desk.stop(_told(error))

    def close(self) -> None:
        """Write all that waits, and end."""
        self._leave()


def unused(folder: Path) -> Path:
    """The folder itself or, if it holds a run, the first beside it that does not."""
    number, free = 1, folder
    while is_there(manifest_path(free / "transcript")):
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    if free != folder:
        _LOG.warning("overheard: %s holds a recording; this run goes to %s", folder, free)
    return free


@dataclass(frozen=True, slots=True)
class _Task:
    """Something to write, and the bytes of weights that wait for it."""

    call: Callable[[], None]
    size: int


@final
class _Desk:
    """What the run's threads and the writing one share."""

    def __init__(self, folder: Path, facts: Facts, *, goes_on: bool) -> None:
        self.folder = folder
        self.stopped: str | None = None
        self._facts = facts
        self._goes_on = goes_on
        self._tasks = deque[_Task]()
        self._pending = 0
        self._done = 0
        self._is_left = False
        self._is_over = False
        self._changed = threading.Condition()
        # Used by the writing thread alone.
        self._recorder: Recorder | None = None
        self._parties: tuple[Party, ...] = ()
        self._said: OpenRound | None = None
        self._open = ExitStack()

    def put(self, call: Callable[[], None], size: int) -> None:
        with self._changed:
            # One that is larger than all that may wait goes when nothing else does.
            self._await(lambda: not self._pending or self._pending + size <= MOST_PENDING)
            if self._is_left or self._is_over:
                return
            self._tasks.append(_Task(call, size))
            self._pending += size
            self._changed.notify_all()

    def leave(self, writer: threading.Thread) -> None:
        with self._changed:
            self._is_left = True
            self._changed.notify_all()
            # Garbage may be collected on any thread, also on the writing one.
            if threading.current_thread() is writer:
                return
            self._await(lambda: False)
        # A thread that the end of the program finds letting go of tensors aborts it.
        writer.join(LAST)

    def stop(self, why: str) -> None:
        with self._changed:
            if self._is_over or self.stopped is not None:
                return
            self.stopped = why
            self._tasks.clear()
        # Before anybody who waits goes on, and perhaps ends the program.
        _LOG.warning("overheard: the run goes on, its recording ends here: %s", why)
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def work(self) -> None:
        try:
            while (task := self._next()) is not None:
                task.call()
                with self._changed:
                    self._pending -= task.size
                    self._done += 1
                    self._changed.notify_all()
                # Not held while the next is waited for: what it holds may be large.
                del task
            if self.stopped is None:
                self._open.close()
        # Whatever it is, it must not reach the run.
        except Exception as error:
            self.stop(_told(error))
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def begin(self, parties: tuple[Party, ...]) -> None:
        self._open.close()
        self._said, self._parties = None, parties

    def say(
        self,
        sender: Party,
        readers: frozenset[Party],
        body: Callable[[], Body],
        times: Times | None,
    ) -> None:
        try:
            said, left_out = _floating(body())
        # What came from outside is at fault, not the recording.
        except Exception as error:
            said, left_out = Missing(f"not recorded: {_told(error)}"), ()
        round_ = self._round(left_out)
        message = Message(self._number(), sender, readers, said, times)
        try:
            round_.send(message)
        except ValueError as error:
            round_.send(replace(message, body=Missing(f"not recorded: {error}")))

    def commit(self) -> None:
        if self._said is not None:
            self._said.close()

    def _await(self, is_so: Callable[[], bool]) -> None:
        """Wait until it is so, the recording is over, or the disk is taken for dead."""
        done = -1
        while not (self._is_over or is_so()):
            if done == self._done:
                self.stop(f"nothing could be written to {self.folder} for {PATIENCE:g} s")
                return
            done = self._done
            self._changed.wait_for(
                lambda: self._is_over or is_so() or self._done != done,  # noqa: B023
                PATIENCE,
            )

    def _round(self, left_out: tuple[str, ...]) -> OpenRound:
        """The open round; the first message opens it, and the very first the folder."""
        if self._recorder is None:
            facts = self._facts
            manifest = Manifest(
                facts.task,
                facts.model,
                facts.recipe,
                facts.defenses,
                self._parties,
                facts.rounds,
                participation=facts.participation,
                framework=facts.framework,
                left_out=left_out,
            )
            if not self._goes_on:
                self.folder = unused(self.folder)
            elif is_there(manifest_path(self.folder / "transcript")):
                # What is left out was told by the run's first model.
                there = read_manifest(self.folder)
                manifest = replace(manifest, left_out=there.left_out, parties=there.parties)
            self._recorder = Recorder(self.folder, manifest, past_cache=PastCache())
        if self._said is None:
            self._said = self._open.enter_context(self._recorder.round())
        return self._said

    def _number(self) -> int:
        assert self._recorder is not None, "a round is open"
        return self._recorder.committed()

    def _next(self) -> _Task | None:
        """The next task; None when all is done and nobody is left to give any."""
        with self._changed:
            self._changed.wait_for(lambda: self._tasks or self._is_left or self._is_over)
            if self._is_over or not self._tasks:
                return None
            return self._tasks.popleft()


def _told(error: Exception) -> str:
    """What went wrong, on one line."""
    what = " ".join(str(error).split())
    if isinstance(error, AuditError | ValueError):
        return what
    return f"{type(error).__name__}: {what}" if what else type(error).__name__


def _floating(body: Body) -> tuple[Body, tuple[str, ...]]:
    """The same with its tensors at hand, without those that are no floating-point numbers."""
    match body:
        case Broadcast():
            weights, left_out = _split(body.weights)
            return replace(body, weights=weights), left_out
        case Update() | Aggregate():
            delta, left_out = _split(body.delta)
            return replace(body, delta=delta), left_out
        case _:
            return body, ()


def _split(weights: Weights) -> tuple[Weights, tuple[str, ...]]:
    held = dict(weights)
    floating = {name: one for name, one in held.items() if one.is_floating_point()}
    return floating, tuple(name for name in held if name not in floating)
