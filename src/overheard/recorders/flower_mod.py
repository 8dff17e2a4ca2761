"""Recording of the messages that one Flower client receives and sends."""

import logging
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import final

import torch

from overheard.archive.layout import (
    count_committed_rounds,
    manifest_path,
    messages_path,
    path_exists,
    transcript_folder,
)
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import read_round
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import client
from overheard.disk.folders import remove_file
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower_api import ClientAppCallable, Context, Message, Mod
from overheard.recorders.flower_arrays import ArrayDecoder, PackedArrays
from overheard.recorders.flower_contents import extract_arrays
from overheard.recorders.flower_defenses import stated_defenses
from overheard.recorders.flower_messages import (
    is_recorded,
    read_other_replies,
    read_replies,
    read_requests,
)
from overheard.recorders.flower_rounds import FlowerRoundRecorder
from overheard.recorders.node_names import PARTITION_KEY, NodeNames
from overheard.recorders.replies.differences import ReplyKind, Scales
from overheard.recorders.replies.reply_reading import CountUnit, ReplyReading
from overheard.recorders.reply_values import SIZE_KEYS
from overheard.recorders.run_info import RunInfo

_LOG = logging.getLogger("overheard")


def recording_mod(
    folder: Path | str,
    *,
    model: str = "",
    defenses: Iterable[object] | None = None,
    examples_key: str = "",
    keep_error_texts: bool = False,
    kind: ReplyKind = "weights",
    rate: float | None = None,
    scales: Scales | str | None = None,
    count_unit: CountUnit = "examples",
    group: str | int | None = None,
) -> Mod:
    """Return a mod that records this client's messages: the view of a curious client.

    Each node of each run has its own transcript, `FOLDER/run-<run id>-node-<node id>`, whose
    parties are the server and the node. `node_names.json` beside it has the partition number of
    the node, if its configuration has one (`partition-id`). The transcript continues across
    processes, as Flower may start one per message. As the first mod of a function it records
    what leaves the client, after later mods such as noise have acted.

    Errors in recording are logged and do not change the reply. The reply is delayed until it is
    on the disk, since Flower may end the process right after it.

    Args:
        folder: folder for the transcripts.
        model: the architecture, in words; "" = unknown.
        defenses: all defenses in force: Flower's strategies and mods, or your own records;
            [] = there are none; None = not stated.
        examples_key: metric with the number of training examples, if it is not Flower's
            "num-examples".
        keep_error_texts: whether to record the texts of errors, and not only their codes.
        kind: what the reply holds, as in `RecordingGrid`.
        rate: what the server multiplies gradients by.
        scales: by what whole-number codes of weights are multiplied, as in `RecordingGrid`.
        count_unit: what the client reports as its number of examples; if it is not "examples",
            their number is unknown.
        group: name or number of a group that may read the recording; None = only the user who
            runs the client.

    """
    reading = ReplyReading(kind, rate, scales, count_unit=count_unit)
    records, are_stated = stated_defenses(defenses)
    run_info = RunInfo(
        f"flwr {version('flwr')}", model, defenses=records, are_defenses_stated=are_stated
    )
    sizes = (examples_key, *SIZE_KEYS) if examples_key else SIZE_KEYS

    def record(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if not is_recorded(message):
            return call_next(message, context)
        metadata = message.metadata
        run_folder = Path(folder) / f"run-{metadata.run_id:d}-node-{metadata.dst_node_id:d}"
        recorder = _MessageRecorder(
            run_folder,
            run_info,
            sizes,
            reading,
            keep_error_texts=keep_error_texts,
            group=group,
        )
        try:
            recorder.record_request(message)
            recorder.record_name(metadata.dst_node_id, context.node_config.get(PARTITION_KEY))
            reply = call_next(message, context)
            recorder.record_reply(reply)
            return reply
        finally:
            recorder.close()

    return record


@final
class _MessageRecorder:
    """Records one message and its reply; never raises."""

    def __init__(
        self,
        folder: Path,
        facts: RunInfo,
        sizes: tuple[str, ...],
        reading: ReplyReading,
        *,
        keep_error_texts: bool,
        group: str | int | None,
    ) -> None:
        self._folder = folder
        self._writer = AsyncWriter(folder, facts, is_resumed=True, ends_run=False, group=group)
        self._sizes = sizes
        self._reading = reading
        self._keeps_error_texts = keep_error_texts
        self._rounds: FlowerRoundRecorder | None = None

    def record_request(self, message: Message) -> None:
        """Record the request; the model is written while the client trains."""
        try:
            requests = read_requests((message,))
            if not requests:
                return
            rounds = FlowerRoundRecorder(
                self._writer,
                keep_error_texts=self._keeps_error_texts,
                decoder=ArrayDecoder(_left_out(self._folder)),
                reading=self._reading,
                is_at_client=True,
            )
            self._resume_round(rounds, extract_arrays(message.content))
            rounds.record_requests(requests)
            rounds.record_broadcast()
            self._rounds = rounds
        except Exception as error:
            self._stop(error)

    def record_reply(self, reply: Message) -> None:
        """Record the client's reply before it is sent."""
        try:
            if self._rounds is None:
                return
            self._rounds.record_replies(read_replies((reply,), self._sizes, self._reading))
            others = read_other_replies((reply,), self._sizes, self._reading)
            for kind, listed in others.items():
                self._rounds.list_replies(listed, kind)
        except Exception as error:
            self._stop(error)

    def record_name(self, node: int, name: object) -> None:
        """Record the name that the node has by its configuration; None = it has none."""
        names = NodeNames(PARTITION_KEY, self._writer)
        names.add(client(node), name)
        names.write()

    def close(self) -> None:
        """Wait until everything is on the disk."""
        try:
            if self._rounds is not None:
                self._rounds.end_round()
            self._writer.close()
        except Exception as error:
            self._stop(error)

    def _resume_round(self, rounds: FlowerRoundRecorder, parts: PackedArrays) -> None:
        """Reopen the last round if it has this model and no update yet."""
        count = count_committed_rounds(self._folder)
        if not count:
            return
        messages = read_round(self._folder, count - 1)
        models = [
            message.body.weights for message in messages if isinstance(message.body, Broadcast)
        ]
        if not models or any(isinstance(message.body, Update) for message in messages):
            return
        sent = ArrayDecoder(_left_out(self._folder)).decode_model(parts)
        if sent.keys() != models[0].keys() or not all(
            torch.equal(weight, models[0][name]) for name, weight in sent.items()
        ):
            return
        # From here on the round is not committed, until its messages are written again.
        remove_file(
            messages_path(transcript_folder(self._folder), count - 1), inside=self._folder
        )
        rounds.resume_round(parts, messages)

    def _stop(self, error: Exception) -> None:
        _LOG.debug("overheard: error while recording", exc_info=error)
        self._writer.stop(error)


def _left_out(folder: Path) -> tuple[str, ...]:
    """Return the names of the tensors that the transcript omits."""
    if not path_exists(manifest_path(transcript_folder(folder))):
        return ()
    return read_manifest(folder).left_out
