"""Recording of a Flower run on its server, by a grid that forwards and records messages."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, final

from overheard.archive.layout import TRUTH_FILE
from overheard.archive.run_config import RUN_CONFIG, run_config_text
from overheard.archive.truth import truth_text
from overheard.core.facts import Facts
from overheard.core.mechanism import ClientSampling
from overheard.core.parties import Party, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.core.truth import GroundTruth
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower_api import (
    ArrayRecord,
    Grid,
    Message,
    NodeInfo,
    RecordDict,
    Run,
)
from overheard.recorders.flower_contents import extract_arrays
from overheard.recorders.flower_defenses import stated_defenses
from overheard.recorders.flower_messages import (
    UNKNOWN_NODE,
    find_in_reply,
    read_other_replies,
    read_replies,
    read_requests,
    sender_of,
    unrecorded_kinds,
)
from overheard.recorders.flower_mod import recording_mod
from overheard.recorders.flower_rounds import FlowerRoundRecorder
from overheard.recorders.node_names import PARTITION_KEY, NameSource, NodeNames
from overheard.recorders.replies.canary_nodes import CanaryNodes
from overheard.recorders.replies.differences import ReplyKind, Scales
from overheard.recorders.replies.reply_reading import CountUnit, ReplyReading
from overheard.recorders.reply_values import SIZE_KEYS
from overheard.recorders.run_info import RunInfo
from overheard.recorders.stated_algorithm import adds_mean, describe_algorithm

__all__ = ["CanaryNodes", "RecordingGrid", "recording_mod"]

FRAMEWORK = f"flwr {version('flwr')}"

_LOG = logging.getLogger("overheard")


# Without flwr installed, its classes have no types for mypy.
@final
class RecordingGrid(Grid):  # type: ignore[misc, unused-ignore]
    """A grid that records all messages that a server sends and receives in a transcript.

    Use it in place of the grid that a `flwr.serverapp.ServerApp` receives, and change nothing
    else:

        strategy.start(grid=RecordingGrid(grid, "recording"), ...)

    Messages and replies pass unchanged, as the same objects in the same order. An error in
    recording ends the recording with a warning (see `stopped`), but never the run. Weights are
    written by another thread while the run continues. Pending writes finish when the app ends.

    A node is the party `client/<node id>`. Node ids are fixed within a run, and differ between
    runs. `node_names.json` beside the transcript maps parties to the names that the app gives.

    Args:
        grid: the wrapped grid.
        folder: folder for the run. If it has a transcript, the run goes to `NAME-2` beside it.
        model: the architecture, in words; "" = unknown.
        task: shape of an input and names of the classes; None = not stated.
        recipe: how clients train; None = not stated.
        defenses: all defenses in force: Flower's strategies and mods, or objects of
            `DefenseRecord`; [] = there are none; None = not stated.
        rounds: number of planned rounds.
        participation: share of the clients sampled in a round (0..1).
        sampling: how they are sampled; None = not stated.
        examples_key: metric with the number of training examples, if it is not Flower's
            "num-examples".
        keep_error_texts: whether to record the texts of clients' errors, which may quote their
            data, and not only the error codes.
        kind: what replies hold: "weights"; "differences", the client's weights minus those that
            it began from; or "gradients".
        rate: what the server multiplies gradients by before it subtracts them.
        scales: what whole-number codes are multiplied by to get weights: one number, one
            for each tensor, or the name of the record or metric in which each reply states it.
        began_in: the metric that states from which round's model a client began; "" = each
            client began from the model that it was sent last.
        count_unit: what clients report as their number of examples: "examples"; "steps" of
            their optimizer; or "batches" of one epoch. Without a recipe, the number of examples
            is then unknown.
        strategy: the strategy of the run. If it is one of Flower's own, its class tells the
            algorithm; None = not stated.
        node_names: where the names of nodes come from: the name of a value in their replies'
            metrics or configuration, a mapping from node ids, or a function of the node id.
        group: name or number of a group of the operating system that may read the recording;
            None = only the user who runs the server.
        canaries: the nodes that are canary clients, as the mod of clients has them; the ground
            truth of the recording then names them. None = there are none.

    """

    def __init__(
        self,
        grid: Grid,
        folder: Path | str,
        *,
        model: str = "",
        task: Task | None = None,
        recipe: Recipe | None = None,
        defenses: Iterable[object] | None = None,
        rounds: int | None = None,
        participation: float | None = None,
        sampling: ClientSampling | None = None,
        examples_key: str = "",
        keep_error_texts: bool = False,
        node_names: NameSource = PARTITION_KEY,
        strategy: object = None,
        kind: ReplyKind = "weights",
        rate: float | None = None,
        scales: Scales | str | None = None,
        began_in: str = "",
        count_unit: CountUnit = "examples",
        group: str | int | None = None,
        canaries: CanaryNodes | None = None,
    ) -> None:
        """Begin a recording; the folder is created with the first message."""
        self._reading = ReplyReading(kind, rate, scales, began_in, count_unit)
        records, are_stated = stated_defenses(defenses)
        run_info = RunInfo(
            FRAMEWORK,
            model,
            task,
            recipe,
            records,
            rounds,
            participation,
            are_stated,
            describe_algorithm(strategy),
            sampling=sampling,
        )
        self._grid = grid
        self._writer = AsyncWriter(
            Path(folder), run_info, log=logging.getLogger("flwr"), group=group
        )
        self._names = NodeNames(node_names, self._writer)
        self._sizes = (examples_key, *SIZE_KEYS) if examples_key else SIZE_KEYS
        self._rounds = FlowerRoundRecorder(
            self._writer,
            keep_error_texts=keep_error_texts,
            reading=self._reading,
            recipe=recipe,
            adds_mean=adds_mean(strategy),
        )
        self._has_run_config = False
        self._canaries = canaries
        self._canary_seeds = dict[Party, int]()
        # A custom loop may push and pull on several threads.
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """Folder of the recording; it may change until the first message."""
        return self._writer.folder

    @property
    def stopped(self) -> str | None:
        """Why the recording stopped; None = it has not."""
        return self._writer.stopped

    def finish(self, arrays: ArrayRecord | None = None) -> None:
        """Finish pending writes and end the recording; the grid keeps working.

        Args:
            arrays: the final model (`Result.arrays`), for runs whose clients do not evaluate it
                and so never receive it.

        """
        if arrays is not None:
            content = RecordDict({"arrays": arrays})
            self._record(lambda: self._rounds.record_final_model(extract_arrays(content)))
        self._record(self._rounds.end_run)
        self._record(self._names.write)
        self._writer.close()

    def __enter__(self) -> "RecordingGrid":
        """Return this grid."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the recording, also after an error."""
        self.finish()

    # Any: the wrapped grid may have attributes of any type.
    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped grid."""
        if name.startswith("__") or name == "_grid":
            raise AttributeError(name)
        return getattr(self._grid, name)

    def set_run(self, run: Run) -> None:
        """Set the run of the wrapped grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """The run of the wrapped grid."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message with the wrapped grid."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the known nodes; those known at the start are written to the manifest."""
        found = self._grid.get_node_ids()
        nodes = found if isinstance(found, Collection) else list(found)
        self._record(lambda: self._rounds.add_nodes(map(client, nodes)))
        self._record(lambda: self._names.add_nodes(nodes))
        return nodes

    def get_nodes(self) -> Iterable[NodeInfo]:
        """Return the wrapped grid's information on its nodes."""
        found: Iterable[NodeInfo] = self._grid.get_nodes()
        return found

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Record and send messages whose replies are pulled later."""
        sent = list(messages)
        self._record(lambda: self._record_requests(sent))
        numbers: Iterable[str] = self._grid.push_messages(sent)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pull and record replies."""
        replies = list(self._grid.pull_messages(message_ids))
        if replies:
            self._record(lambda: self._record_replies(replies))
        return replies

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: int | float | None = None
    ) -> Iterable[Message]:
        """Record and send messages, and record the replies that arrive in time."""
        sent = list(messages)
        self._record(lambda: self._record_requests(sent))
        try:
            replies = list(self._grid.send_and_receive(sent, timeout=timeout))
            self._record(lambda: self._record_replies(replies))
        finally:
            if sent:
                self._record(self._end_round)
        return replies

    def _record_requests(self, messages: Sequence[Message]) -> None:
        self._rounds.record_requests(read_requests(messages))
        for kind in unrecorded_kinds(messages):
            self._rounds.warn_once(
                f"messages of the kind {kind!r} are not stored: replies to them are listed"
            )

    def _record_run_config(self) -> None:
        """Write those settings of clients' training that the run was started with."""
        # A grid that an app itself defines may have no run.
        try:
            config = dict(self._grid.run.override_config)
        except Exception:
            return
        if text := run_config_text(config):
            self._writer.write_extra_file(RUN_CONFIG, text)

    def _record_replies(self, replies: Sequence[Message]) -> None:
        self._rounds.record_replies(read_replies(replies, self._sizes, self._reading))
        for kind, others in read_other_replies(replies, self._sizes, self._reading).items():
            self._rounds.list_replies(others, kind)
        self._find_canaries(replies)
        for reply in replies:
            self._names.read_reply(sender_of(reply), partial(find_in_reply, reply))

    def _find_canaries(self, replies: Sequence[Message]) -> None:
        """Write the ground truth if a canary replies for the first time."""
        if self._canaries is None:
            return
        nodes = [
            reply.metadata.src_node_id for reply in replies if sender_of(reply) != UNKNOWN_NODE
        ]
        found = {**self._canary_seeds, **self._canaries.seeds(nodes)}
        if found != self._canary_seeds:
            self._canary_seeds = found
            fact = CanaryDirections(found)
            self._writer.write_extra_file(TRUTH_FILE, truth_text(GroundTruth(Facts(fact))))

    def _end_round(self) -> None:
        self._rounds.end_round()
        self._names.write()
        if not self._has_run_config:
            self._has_run_config = True
            self._record_run_config()

    def _record(self, call: Callable[[], None]) -> None:
        """Call a function of the recorder; its errors end the recording, but not the run."""
        if self._writer.stopped is not None:
            return
        try:
            with self._lock:
                call()
        except Exception as error:
            _LOG.debug("overheard: error while recording", exc_info=error)
            self._writer.stop(error)
