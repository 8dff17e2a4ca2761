"""Records a Flower run on its server: a grid that hands on what it is given, and notes it."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, final

from flwr.app import ArrayRecord, Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.recorders.facts import Facts
from overheard.recorders.flower_arrays import parts_of
from overheard.recorders.flower_contents import SIZES
from overheard.recorders.flower_defenses import defense_records
from overheard.recorders.flower_mod import recording_mod
from overheard.recorders.flower_rounds import FlowerRounds
from overheard.recorders.scribe import Scribe

__all__ = ["RecordingGrid", "recording_mod"]

FLOWER = f"flwr {version('flwr')}"

_LOG = logging.getLogger("overheard")


# Where flwr is not installed, mypy knows nothing of it.
@final
class RecordingGrid(Grid):  # type: ignore[misc, unused-ignore]
    """A grid that writes all that a server sends and is sent to a transcript.

    Use it in place of the grid that a `ServerApp` is handed, and change nothing else:

        strategy.start(grid=RecordingGrid(grid, "recording"), ...)

    Messages and replies go through unchanged, the same objects in the same order. Whatever
    goes wrong in recording ends the recording with a warning (`stopped` says which), never the
    run. Weights are written on another thread while the run goes on; what still waits when the
    app ends is written then.

    A node is the party `client/<node id>`. Node ids last for a run and differ in the next.

    Args:
        grid: that does the work.
        folder: for the run. If it holds a transcript, the run goes to `NAME-2` beside it.
        model: the architecture, in words; "" = not told.
        task: shape of an input and names of the classes.
        recipe: how clients train.
        defenses: in force: Flower's strategies and mods, or records made by hand.
        rounds: how many are planned.
        participation: share of the clients asked in a round (0..1).
        examples_key: under which name clients tell how many examples they trained on, if it is
            not Flower's "num-examples".
        keep_error_texts: whether to record what clients' errors say, which may quote their
            data, and not only of which kind they are.

    """

    def __init__(
        self,
        grid: Grid,
        folder: Path | str,
        *,
        model: str = "",
        task: Task | None = None,
        recipe: Recipe | None = None,
        defenses: Iterable[object] = (),
        rounds: int | None = None,
        participation: float | None = None,
        examples_key: str = "",
        keep_error_texts: bool = False,
    ) -> None:
        """Begin a recording; the folder is made with the first message."""
        facts = Facts(
            FLOWER, model, task, recipe, defense_records(defenses), rounds, participation
        )
        self._grid = grid
        self._scribe = Scribe(Path(folder), facts)
        self._rounds = FlowerRounds(
            self._scribe,
            sizes=(examples_key, *SIZES) if examples_key else SIZES,
            keep_error_texts=keep_error_texts,
        )
        # A custom loop may push and pull on several threads.
        self._alone = threading.Lock()

    @property
    def folder(self) -> Path:
        """Where the run is written, as far as is known before its first message."""
        return self._scribe.folder

    @property
    def stopped(self) -> str | None:
        """Why nothing more is recorded; None while all is well."""
        return self._scribe.stopped

    def finish(self, arrays: ArrayRecord | None = None) -> None:
        """Write all that waits, and end the recording; the grid goes on working.

        Args:
            arrays: the model that the run came to (`Result.arrays`), for a run whose clients
                evaluate nothing, and so are never sent it.

        """
        if arrays is not None:
            content = RecordDict({"arrays": arrays})
            self._note(lambda: self._rounds.end_with(parts_of(content)))
        self._note(self._rounds.over)
        self._scribe.close()

    def __enter__(self) -> "RecordingGrid":
        """Give this grid back."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the recording, whatever happened."""
        self.finish()

    # What a user finds on the grid beneath, whatever grid it is.
    def __getattr__(self, name: str) -> Any:
        """Whatever else the grid beneath has."""
        if name.startswith("__") or name == "_grid":
            raise AttributeError(name)
        return getattr(self._grid, name)

    def set_run(self, run: Run) -> None:
        """Set the run that the grid beneath works in."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """The run that the grid beneath works in."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Make a message with the grid beneath."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """The nodes that the grid beneath knows; those of the start go to the manifest."""
        found = self._grid.get_node_ids()
        nodes = found if isinstance(found, Collection) else list(found)
        self._note(lambda: self._rounds.known(nodes))
        return nodes

    def get_nodes(self) -> Iterable[NodeInfo]:
        """What the grid beneath knows of its nodes."""
        found: Iterable[NodeInfo] = self._grid.get_nodes()
        return found

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Note and send messages whose answers are pulled later."""
        sent = list(messages)
        self._note(lambda: self._rounds.asked(sent))
        numbers: Iterable[str] = self._grid.push_messages(sent)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Take and note the answers that came."""
        replies = list(self._grid.pull_messages(message_ids))
        if replies:
            self._note(lambda: self._rounds.came(replies))
        return replies

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: int | float | None = None
    ) -> Iterable[Message]:
        """Note and send messages, and note the answers that came in time."""
        sent = list(messages)
        self._note(lambda: self._rounds.asked(sent))
        try:
            replies = list(self._grid.send_and_receive(sent, timeout=timeout))
            self._note(lambda: self._rounds.came(replies))
        finally:
            if sent:
                self._note(self._rounds.over)
        return replies

    def _note(self, call: Callable[[], None]) -> None:
        """Do this for the recording, which must not reach the run, whatever comes of it."""
        if self._scribe.stopped is not None:
            return
        try:
            with self._alone:
                call()
        except Exception as error:
            _LOG.debug("overheard: at recording", exc_info=error)
            self._scribe.stop(error)
