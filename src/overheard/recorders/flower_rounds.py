"""Rounds of a transcript from the requests and replies of a Flower server."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, final

from overheard.core.messages import (
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Timestamps,
    Update,
)
from overheard.core.parties import SERVER, Party
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower_arrays import (
    ArrayDecoder,
    PackedArrays,
    align_records,
    count_bytes,
)
from overheard.recorders.reply_values import AnswerMetadata, sanitize_text

MAX_ERROR_LENGTH = 10_000
"""Most characters of an error's text that are recorded."""

RequestKind = Literal["train", "evaluate"]

_TO_SERVER = frozenset({SERVER})
_LOG = logging.getLogger("overheard")


@dataclass(frozen=True, slots=True, eq=False)
class FlowerRequest:
    """A request to one node.

    Args:
        node: the node.
        kind: what the node is asked to do.
        parts: the model that it is sent.
        config: configuration in clear text, by name.
        sent: when the request was made, in seconds since 1970; None = unknown.
        message_id: returns the number of its message once that is sent; "" = it has none.

    """

    node: Party
    kind: RequestKind
    parts: PackedArrays
    config: Mapping[str, str]
    sent: float | None = None
    message_id: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class ReplyContent:
    """What a reply contains, if it contains no error.

    Args:
        arrays: its arrays.
        metadata: its metadata.
        record: the name of its only record of arrays; "" = it has several, or no names.

    """

    arrays: PackedArrays
    metadata: AnswerMetadata
    record: str = ""


@dataclass(frozen=True, slots=True)
class ReplyError:
    """The error that a node sent in place of a reply.

    Args:
        name: its code.
        text: what the node says of it, which may quote its data.

    """

    name: str
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class FlowerReply:
    """A reply of one node.

    Args:
        node: the node.
        read: reads the content or the error, and may raise any error.
        sent: when the reply was made, in seconds since 1970; None = unknown.
        received: when it arrived; None = unknown.
        reply_to: number of the request's message; "" = unknown.

    """

    node: Party
    read: Callable[[], ReplyContent | ReplyError]
    sent: float | None = None
    received: float | None = None
    reply_to: str = ""


@final
class FlowerRoundRecorder:
    """Records a Flower run, round by round.

    A round begins with a model to train. A model to evaluate also begins a round, as it is the
    result of the previous one; if nodes then train the same model, that is the same round. A
    node is the party `client/<node id>`.

    Not thread-safe.

    Args:
        scribe: writes the messages.
        keep_error_texts: whether to record the texts of errors, which may quote a client's
            data, and not only their codes.
        decoder: decoder of a resumed run; None = a new run.

    """

    def __init__(
        self,
        scribe: AsyncWriter,
        *,
        keep_error_texts: bool = False,
        decoder: ArrayDecoder | None = None,
    ) -> None:
        """Begin a run without requests."""
        self._scribe = scribe
        self._keeps_error_texts = keep_error_texts
        self._decoder = decoder or ArrayDecoder()
        self._open: _OpenRound | None = None
        self._nodes = set[Party]()
        self._warned = set[str]()

    def resume_round(self, parts: PackedArrays, messages: Sequence[Message]) -> None:
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

    def add_nodes(self, nodes: Iterable[Party]) -> None:
        """Add nodes that take part, even if they were not sampled yet."""
        self._nodes.update(nodes)

    def record_requests(self, requests: Sequence[FlowerRequest]) -> None:
        """Record requests before they are sent to nodes."""
        for kind in ("train", "evaluate"):
            of_kind = [one for one in requests if one.kind == kind]
            if of_kind:
                self._ask(of_kind)

    def record_broadcast(self) -> None:
        """Record the last broadcast now, and not with its first reply."""
        if self._open is not None and self._open.unannounced:
            self._announce(self._open)
            self._open.unannounced.clear()

    def record_replies(self, replies: Sequence[FlowerReply]) -> None:
        """Record replies that just arrived, in this order."""
        self.record_broadcast()
        requests = (
            [None] * len(replies) if self._open is None else self._open.match_replies(replies)
        )
        for request, reply in zip(requests, replies, strict=True):
            if request is not None:
                self._answer(request, reply)
            else:
                self.warn_once(
                    "replies that arrived after the end of their round are not recorded"
                )

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

    def _ask(self, requests: Sequence[FlowerRequest]) -> None:
        groups = list[list[FlowerRequest]]()
        for one in requests:
            group = next((members for members in groups if members[0].parts == one.parts), None)
            if group is None:
                groups.append([one])
            else:
                group.append(one)
        if len(groups) > 1:
            self.warn_once(
                "nodes received different models: the most frequent one is recorded as the "
                "broadcast, and each update is relative to its node's model"
            )
        parts = max(groups, key=len)[0].parts
        self._nodes.update(one.node for one in requests)
        if self._open is None or not self._open.accepts(requests[0].kind, parts):
            self.end_round()
            self._begin(parts)
        assert self._open is not None
        self._open.add(requests)

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
            times=Timestamps(first.sent),
        )

    def _answer(self, request: FlowerRequest, reply: FlowerReply) -> None:
        def write(body: Callable[[], MessageBody], size: int = 0) -> None:
            times = Timestamps(reply.sent, reply.received)
            self._scribe.write(request.node, _TO_SERVER, body, times=times, size=size)

        # Any error here comes from the sender's content.
        try:
            content = reply.read()
        except Exception as error:
            return write(
                partial(MissingReply, f"not recorded: {type(error).__name__} at reading it")
            )
        if isinstance(content, ReplyError):
            return write(partial(MissingReply, self._reason(request, content)))
        metadata = content.metadata
        if metadata.unrecorded:
            self.warn_once(
                "replies contain values that a transcript cannot store: texts, NaN and "
                "infinities are omitted"
            )
        if request.kind == "evaluate":
            return write(partial(Evaluation, metadata.metrics, metadata.examples))
        return write(
            partial(_decode_update, self._decoder, content, request.parts),
            count_bytes(content.arrays),
        )

    def _reason(self, request: FlowerRequest, error: ReplyError) -> str:
        reason = error.name if request.kind == "train" else f"{request.kind}: {error.name}"
        if self._keeps_error_texts and error.text:
            return f"{reason}: {sanitize_text(error.text, MAX_ERROR_LENGTH)}"
        return reason

    def warn_once(self, what: str) -> None:
        """Log a warning, unless it was logged already."""
        if what not in self._warned:
            self._warned.add(what)
            _LOG.warning("overheard: %s", what)


@dataclass(slots=True)
class _OpenRound:
    """The open round, which determines how the next message is recorded."""

    parts: PackedArrays
    is_trained: bool = False
    is_answered: bool = False
    waiting: list[FlowerRequest] = field(default_factory=list)
    unannounced: list[FlowerRequest] = field(default_factory=list)

    def accepts(self, kind: RequestKind, parts: PackedArrays) -> bool:
        """Return whether a model to train or evaluate belongs to this round."""
        is_over = self.is_trained and (kind == "evaluate" or self.is_answered)
        return not is_over and self.parts == parts

    def add(self, requests: Sequence[FlowerRequest]) -> None:
        """Add requests of one kind, whose replies are outstanding."""
        if requests[0].kind == "train":
            self.is_trained = True
        self.waiting.extend(requests)
        self.unannounced.extend(requests)

    def match_replies(self, replies: Sequence[FlowerReply]) -> list[FlowerRequest | None]:
        """Return the request of each reply, and remove it from the outstanding ones."""
        by_id = {one.message_id(): one for one in self.waiting}
        by_id.pop("", None)
        by_node = {one.node: one for one in self.waiting if not one.message_id()}
        found = list[FlowerRequest | None]()
        for reply in replies:
            one = by_id.pop(reply.reply_to, None) or by_node.pop(reply.node, None)
            found.append(one)
            self.is_answered |= one is not None and one.kind == "train"
        matched = {id(one) for one in found}
        self.waiting = [one for one in self.waiting if id(one) not in matched]
        return found

    def end(self) -> None:
        """Drop the outstanding requests."""
        self.waiting.clear()
        self.is_answered = True


def _decode_broadcast(
    decoder: ArrayDecoder, parts: PackedArrays, config: Mapping[str, str]
) -> Broadcast:
    return Broadcast(decoder.decode_model(parts), config)


def _decode_update(
    decoder: ArrayDecoder, content: ReplyContent, broadcast: PackedArrays
) -> Update:
    sent, metadata = align_records(content.arrays, content.record, broadcast), content.metadata
    update = decoder.decode_update(sent, broadcast)
    return Update(update.delta, metadata.examples, metadata.metrics)
