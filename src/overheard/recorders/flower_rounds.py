"""Rounds of a transcript from the requests and replies of a Flower server."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from time import time
from typing import final

from flwr.app import Message, MessageType, Metadata
from flwr.common.constant import ErrorCode

from overheard.core.messages import (
    Broadcast,
    Evaluation,
    MessageBody,
    MissingReply,
    Timestamps,
    Update,
)
from overheard.core.messages import Message as TranscriptMessage
from overheard.core.parties import SERVER, Party, client
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower_arrays import (
    ArrayDecoder,
    PackedArrays,
    count_bytes,
    extract_arrays,
)
from overheard.recorders.flower_contents import (
    SIZE_KEYS,
    AnswerMetadata,
    read_answer_metadata,
    read_config,
    sanitize_text,
)

MAX_ERROR_LENGTH = 10_000
"""Most characters of an error's text that are recorded."""

RECORDED_KINDS = (MessageType.TRAIN, MessageType.EVALUATE)
"""The kinds of messages that a transcript can store."""


def is_recorded(message: Message) -> bool:
    """Return whether a transcript can store messages of this kind."""
    return _kind(message) in RECORDED_KINDS


_CODES = {code: name for name, code in vars(ErrorCode).items() if isinstance(code, int)}
_TO_SERVER = frozenset({SERVER})
_LOG = logging.getLogger("overheard")


@final
class FlowerRoundRecorder:
    """Records a Flower run, round by round.

    A round begins with a model to train. A model to evaluate also begins a round, as it is the
    result of the previous one; if nodes then train the same model, that is the same round. A
    node is the party `client/<node id>`.

    Not thread-safe.

    Args:
        scribe: writes the messages.
        sizes: names under which nodes report the number of examples.
        keep_error_texts: whether to record the texts of errors, which may quote a client's
            data, and not only their codes.
        decoder: decoder of a resumed run; None = a new run.

    """

    def __init__(
        self,
        scribe: AsyncWriter,
        *,
        sizes: tuple[str, ...] = SIZE_KEYS,
        keep_error_texts: bool = False,
        decoder: ArrayDecoder | None = None,
    ) -> None:
        """Begin a run without requests."""
        self._scribe = scribe
        self._sizes = sizes
        self._keeps_error_texts = keep_error_texts
        self._decoder = decoder or ArrayDecoder()
        self._open: _OpenRound | None = None
        self._nodes = set[Party]()
        self._warned = set[str]()

    def resume_round(self, parts: PackedArrays, messages: Sequence[TranscriptMessage]) -> None:
        """Write a round again that has no update yet, to continue it.

        Args:
            parts: the broadcast model of the round.
            messages: the messages of the round.

        """
        self._begin(parts)
        for message in messages:
            old_body = message.body
            if isinstance(old_body, Broadcast):
                body: Callable[[], MessageBody] = partial(
                    _decode_broadcast, self._decoder, parts, old_body.config
                )
            else:
                body = partial(replace, old_body)
            self._scribe.write(message.sender, message.readers, body, times=message.times)

    def add_nodes(self, nodes: Iterable[int]) -> None:
        """Add nodes that take part, even if they were not sampled yet."""
        self._nodes.update(map(client, nodes))

    def record_requests(self, messages: Sequence[Message]) -> None:
        """Record requests before they are sent to nodes."""
        for kind in RECORDED_KINDS:
            of_kind = [one for one in messages if _kind(one) == kind]
            if of_kind:
                self._ask(kind, of_kind)
        for other in sorted({_kind(one) for one in messages}.difference(RECORDED_KINDS)):
            self._warn(f"messages of the kind {sanitize_text(other)!r} are not recorded")

    def record_broadcast(self) -> None:
        """Record the last broadcast now, and not with its first reply."""
        if self._open is not None and self._open.unannounced:
            self._announce(self._open)
            self._open.unannounced.clear()

    def record_replies(self, replies: Sequence[Message]) -> None:
        """Record replies that just arrived, in this order."""
        received = time()
        self.record_broadcast()
        requests = (
            [None] * len(replies) if self._open is None else self._open.match_replies(replies)
        )
        for request, reply in zip(requests, replies, strict=True):
            if request is not None:
                self._answer(request, reply, received)
            elif is_recorded(reply):
                self._warn("replies that arrived after the end of their round are not recorded")

    def end_round(self) -> None:
        """End the round; outstanding replies count as missing."""
        if self._open is None:
            return
        self.record_broadcast()
        for request in self._open.waiting:
            self._scribe.write(
                request.node, _TO_SERVER, partial(MissingReply, f"no answer to {request.kind}")
            )
        self._open.end()
        self._scribe.commit()

    def record_final_model(self, parts: PackedArrays) -> None:
        """Record the final model, unless it was broadcast."""
        self.end_round()
        if self._open is None or self._open.is_trained:
            self._begin(parts)
            self._scribe.write(
                SERVER, frozenset(), partial(_decode_broadcast, self._decoder, parts, {})
            )
            self._scribe.commit()

    def _ask(self, kind: str, messages: Sequence[Message]) -> None:
        requests = _requests(kind, messages)
        groups = list[list[_Request]]()
        for one in requests:
            group = next((members for members in groups if members[0].parts == one.parts), None)
            if group is None:
                groups.append([one])
            else:
                group.append(one)
        if len(groups) > 1:
            self._warn(
                "nodes received different models: the most frequent one is recorded as the "
                "broadcast, and each update is relative to its node's model"
            )
        parts = max(groups, key=len)[0].parts
        self._nodes.update(one.node for one in requests)
        if self._open is None or not self._open.accepts(kind, parts):
            self.end_round()
            self._begin(parts)
        assert self._open is not None
        self._open.add(kind, requests)

    def _begin(self, parts: PackedArrays) -> None:
        self._scribe.begin_round((SERVER, *sorted(self._nodes)))
        self._open = _OpenRound(parts)

    def _announce(self, begun: "_OpenRound") -> None:
        requests = begun.unannounced
        first = next(
            (request for request in requests if request.parts == begun.parts), requests[0]
        )
        self._scribe.write(
            SERVER,
            frozenset(request.node for request in requests),
            partial(_decode_broadcast, self._decoder, begun.parts, first.config),
            times=Timestamps(_seconds(first.metadata)),
        )

    def _answer(self, request: "_Request", reply: Message, received: float) -> None:
        def write(body: Callable[[], MessageBody], size: int = 0) -> None:
            times = Timestamps(_seconds(reply.metadata), received)
            self._scribe.write(request.node, _TO_SERVER, body, times=times, size=size)

        if reply.has_error():
            return write(partial(MissingReply, self._reason(request, reply)))
        try:
            metadata, sent = (
                read_answer_metadata(reply.content, self._sizes),
                extract_arrays(reply.content),
            )
        # Any error here comes from the sender's content.
        except Exception as error:
            return write(
                partial(MissingReply, f"not recorded: {type(error).__name__} at reading it")
            )
        if metadata.unrecorded:
            self._warn(
                "replies contain values that a transcript cannot store: texts, NaN and "
                "infinities are omitted"
            )
        if request.kind == MessageType.EVALUATE:
            return write(partial(Evaluation, metadata.metrics, metadata.examples))
        return write(
            partial(_decode_update, self._decoder, sent, request.parts, metadata),
            count_bytes(sent),
        )

    def _reason(self, request: "_Request", reply: Message) -> str:
        name = _CODES.get(reply.error.code, f"error {reply.error.code}")
        reason = name if request.kind == MessageType.TRAIN else f"{request.kind}: {name}"
        if self._keeps_error_texts and reply.error.reason:
            return f"{reason}: {sanitize_text(reply.error.reason, MAX_ERROR_LENGTH)}"
        return reason

    def _warn(self, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            _LOG.warning("overheard: %s", what)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A request to one node; its message gets an id only when it is sent."""

    node: Party
    kind: str
    metadata: Metadata
    parts: PackedArrays
    config: Mapping[str, str]


@dataclass(slots=True)
class _OpenRound:
    """The open round, which determines how the next message is recorded."""

    parts: PackedArrays
    is_trained: bool = False
    is_answered: bool = False
    waiting: list[_Request] = field(default_factory=list)
    unannounced: list[_Request] = field(default_factory=list)

    def accepts(self, kind: str, parts: PackedArrays) -> bool:
        """Return whether a model to train or evaluate belongs to this round."""
        is_over = self.is_trained and (kind == MessageType.EVALUATE or self.is_answered)
        return not is_over and self.parts == parts

    def add(self, kind: str, requests: Sequence[_Request]) -> None:
        """Add requests whose replies are outstanding."""
        if kind == MessageType.TRAIN:
            self.is_trained = True
        self.waiting.extend(requests)
        self.unannounced.extend(requests)

    def match_replies(self, replies: Sequence[Message]) -> list[_Request | None]:
        """Return the request of each reply, and remove it from the outstanding ones."""
        by_id = {one.metadata.message_id: one for one in self.waiting}
        by_id.pop("", None)
        by_node = {one.node: one for one in self.waiting if not one.metadata.message_id}
        found = list[_Request | None]()
        for reply in replies:
            one = by_id.pop(reply.metadata.reply_to_message_id, None) or by_node.pop(
                client(reply.metadata.src_node_id), None
            )
            found.append(one)
            self.is_answered |= one is not None and one.kind == MessageType.TRAIN
        matched = {id(one) for one in found}
        self.waiting = [one for one in self.waiting if id(one) not in matched]
        return found

    def end(self) -> None:
        """Drop the outstanding requests."""
        self.waiting.clear()
        self.is_answered = True


def _requests(kind: str, messages: Sequence[Message]) -> list[_Request]:
    """Read the request to each node; content shared by several nodes is read once."""
    read = dict[int, tuple[PackedArrays, Mapping[str, str]]]()
    requests = []
    for one in messages:
        content = one.content
        if id(content) not in read:
            read[id(content)] = extract_arrays(content), read_config(content)
        parts, config = read[id(content)]
        node = client(one.metadata.dst_node_id)
        requests.append(_Request(node, kind, one.metadata, parts, config))
    return requests


def _decode_broadcast(
    decoder: ArrayDecoder, parts: PackedArrays, config: Mapping[str, str]
) -> Broadcast:
    return Broadcast(decoder.decode_model(parts), config)


def _decode_update(
    decoder: ArrayDecoder, sent: PackedArrays, broadcast: PackedArrays, metadata: AnswerMetadata
) -> Update:
    return Update(decoder.decode_update(sent, broadcast), metadata.examples, metadata.metrics)


def _kind(message: Message) -> str:
    """Return the kind of a message, such as "train" for "train" and "train.my_action"."""
    kind: str = message.metadata.message_type.partition(".")[0]
    return kind


def _seconds(metadata: Metadata) -> float | None:
    """Return when a message was created; None if its value is invalid."""
    created = metadata.created_at
    return float(created) if isinstance(created, int | float) and isfinite(created) else None
