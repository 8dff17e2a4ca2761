"""Rounds of a transcript from the requests and replies of a Flower server."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

from overheard.core.messages import (
    Broadcast,
    Message,
    MessageBody,
    MissingReply,
    Timestamps,
    UnstoredKind,
    UnstoredMessage,
)
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.recipe import Recipe
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower_arrays import ArrayDecoder, PackedArrays, count_bytes
from overheard.recorders.flower_replies import (
    ClearText,
    FlowerReply,
    FlowerRequest,
    OnceLog,
    ReplyContent,
    ReplyError,
    RequestKind,
    UpdateReader,
    decode_mean,
)
from overheard.recorders.replies.differences import UnstorableError
from overheard.recorders.replies.limits import NO_MODEL, ReplyLimits
from overheard.recorders.replies.reply_reading import AS_WEIGHTS, ReplyReading
from overheard.recorders.reply_values import sanitize_text

MAX_ERROR_LENGTH = 10_000
"""Most characters of an error's text that are recorded."""

MAX_STARTS = 16
"""Most models of earlier rounds that replies may begin from, if replies tell their round."""

ROUND_NAMES = ("server-round", "server_round", "current_round", "round")
"""Names under which apps tell clients the number of a round."""

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
        writer: writes the messages.
        keep_error_texts: whether to record the texts of errors, which may quote a client's
            data, and not only their codes.
        decoder: decoder of a resumed run; None = a new run.
        reading: how replies are read.
        recipe: how clients train, to convert reported steps; None = unknown.
        is_at_client: whether the recorder is at a client, whose replies may be masked after it.
        adds_mean: whether the server adds the mean update to the model, so that under secure
            aggregation the next broadcast tells the mean.

    """

    def __init__(
        self,
        writer: AsyncWriter,
        *,
        keep_error_texts: bool = False,
        decoder: ArrayDecoder | None = None,
        reading: ReplyReading = AS_WEIGHTS,
        recipe: Recipe | None = None,
        is_at_client: bool = False,
        adds_mean: bool = True,
    ) -> None:
        """Begin a run without requests."""
        self._reading = reading
        self._recipe = recipe
        self._is_at_client = is_at_client
        self._adds_mean = adds_mean
        self._starts = deque[tuple[int, PackedArrays]](maxlen=MAX_STARTS)
        self._trained = 0
        # Replies that came before any round.
        self._early: list[_EarlyReply] = []
        self._writer = writer
        self._keeps_error_texts = keep_error_texts
        self._decoder = decoder or ArrayDecoder()
        self._open: _OpenRound | None = None
        self._nodes = set[Party]()
        self._warnings = OnceLog()
        self._updates = UpdateReader(self._decoder, reading, self._warnings)

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
            self._writer.write(message.sender, message.readers, body, times=message.times)

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
            # The requests for keys, which have no model, are not recorded either.
            elif not reply.has_only_keys:
                self.warn_once(
                    "replies that came after the end of their round, or twice, are not stored"
                )
                self._list_reply(
                    reply, "it answers no open request to its sender: it came late, or twice"
                )

    def list_replies(self, replies: Sequence[FlowerReply], kind: str) -> None:
        """List replies to messages of a kind that a transcript cannot store."""
        for reply in replies:
            self._list_reply(reply, f"it is a reply to a message of the kind {kind!r}")

    def end_run(self) -> None:
        """End the run; replies that came before any model make up a round of their own."""
        self.end_round()
        if self._early:
            self._begin({})
            self._writer.commit()

    def _list_reply(self, reply: FlowerReply, why: str) -> None:
        """Record the clear text of a reply that cannot be stored, and that it was read."""
        body: Callable[[], MessageBody]
        size = 0
        # Any error here comes from the sender's content.
        try:
            content = reply.read(NO_MODEL if self._open is None else self._open.limits)
        except Exception as error:
            body = partial(UnstoredMessage, _kind_of(error), f"{why}; {_describe_fault(error)}")
        else:
            if isinstance(content, ReplyError):
                if not content.has_arrays:
                    return
                body = partial(UnstoredMessage, "weights", why)
            else:
                kind: UnstoredKind = "weights" if content.arrays else "other"
                text = ClearText(content, self._reading, self._recipe, self._warnings)
                body, size = partial(text.listed, kind, why), content.size
        times = Timestamps(reply.sent, reply.received)
        self._early.append(_EarlyReply(reply.node, body, times, size))
        if self._open is not None:
            self._write_early()

    def _write_early(self) -> None:
        for one in self._early:
            self._writer.write(one.node, _TO_SERVER, one.body, times=one.times, size=one.size)
        self._early.clear()

    def end_round(self) -> None:
        """End the round; outstanding replies count as missing."""
        if self._open is None:
            return
        self.record_broadcast()
        for request in self._open.waiting:
            self._writer.write(
                request.node, _TO_SERVER, partial(MissingReply, f"no answer to {request.kind}")
            )
        self._open.end()
        self._writer.commit()

    def record_final_model(self, parts: PackedArrays) -> None:
        """Record the final model, unless it was broadcast."""
        self.end_round()
        if self._open is None or self._open.is_trained:
            self._begin(parts)
            self._writer.write(
                SERVER,
                frozenset(),
                partial(_decode_broadcast, self._decoder, parts, {}),
                size=count_bytes(parts),
            )
            self._writer.commit()

    def _ask(self, requests: Sequence[FlowerRequest]) -> None:
        groups = _by_model(requests)
        if len(groups) > 1:
            self.warn_once(
                "nodes received different models in one round, as in clustered federated "
                "learning: each is recorded as a broadcast of its nodes, and each update is "
                "relative to its node's model. An audit refuses attacks on such a run: record "
                "each cluster by a grid of its own"
            )
        parts = max(groups, key=len)[0].parts
        self._nodes.update(one.node for one in requests)
        if self._open is None or not self._open.accepts(requests[0].kind, parts):
            self.end_round()
            self._begin(parts)
        assert self._open is not None
        if requests[0].kind == "train" and not self._open.is_trained:
            self._trained += 1
            if self._reading.began_in:
                self._starts.append((self._read_round(requests[0].config), parts))
        self._open.add(requests)

    def _read_round(self, config: Mapping[str, str]) -> int:
        """Return the number of a round by its configuration, or else counted from 1."""
        names = (self._reading.began_in, *ROUND_NAMES)
        told = [config[name] for name in names if config.get(name, "").isdecimal()]
        return int(told[0]) if told else self._trained

    def _begin(self, parts: PackedArrays) -> None:
        if self._open is not None and self._open.parts != parts:
            self._record_secure_mean(self._open, parts)
        self._writer.begin_round((SERVER, *sorted(self._nodes)))
        self._open = _OpenRound(parts)
        self._write_early()

    def _record_secure_mean(self, before: "_OpenRound", parts: PackedArrays) -> None:
        """Record what the server read of a round with masked replies, by the next broadcast."""
        if len(before.masked) < 2:
            return
        if not self._adds_mean:
            self.warn_once(
                "secure aggregation: the server does not just add the mean update, so the mean "
                "is not recorded: wrap the strategy by RecordingStrategy instead of the grid"
            )
            return
        self._write_mean(before, parts, None)
        self._writer.commit()

    def record_mean(
        self, replies: Sequence[FlowerReply], mean: PackedArrays, after: PackedArrays
    ) -> None:
        """Record replies of secure aggregation, of which the server reads the mean alone.

        Args:
            replies: the replies, whose content is masked.
            mean: the mean that the server reads in place of their weights.
            after: the next model of the server.

        """
        self.record_replies(replies)
        if self._open is not None and len(self._open.masked) > 1:
            self._write_mean(self._open, mean, after)
            self._open.masked.clear()

    def _write_mean(
        self, begun: "_OpenRound", mean: PackedArrays, after: PackedArrays | None
    ) -> None:
        """Write the mean of masked replies, after a check that it leads to the next model.

        Args:
            begun: the round.
            mean: what the replies hold on average; without `after`, the next model.
            after: the next model; None = it is `mean`.

        """
        make = partial(
            decode_mean,
            self._decoder,
            AS_WEIGHTS if after is None else self._reading,
            mean,
            begun.parts,
            after if self._adds_mean else None,
            dict(begun.masked),
        )
        self._writer.write(COHORT, _TO_SERVER, make, size=count_bytes(mean))

    def _announce(self, begun: "_OpenRound") -> None:
        groups = _by_model(begun.unannounced)
        # The model of the round comes last, as the one that readers of a transcript take.
        groups.sort(key=lambda group: group[0].parts == begun.parts)
        for group in groups:
            first = group[0]
            self._writer.write(
                SERVER,
                frozenset(request.node for request in group),
                partial(_decode_broadcast, self._decoder, first.parts, first.config),
                times=Timestamps(first.sent),
                size=count_bytes(first.parts),
            )

    def _answer(self, request: FlowerRequest, reply: FlowerReply) -> None:
        limits = ReplyLimits.of_model(len(request.parts), count_bytes(request.parts))
        size, readers = 0, _TO_SERVER
        body: Callable[[], MessageBody]
        # Any error here comes from the sender's content.
        try:
            content = reply.read(limits)
            if isinstance(content, ReplyError):
                body = self._read_error(request, content)
            else:
                body = self._read_answer(request, content)
                size = content.size
                # At the client, the reply is not masked yet.
                is_clear = request.kind == "train" and bool(content.arrays)
                if request.is_secure and self._is_at_client and is_clear:
                    readers = frozenset()
        except Exception as error:
            body = partial(UnstoredMessage, _kind_of(error), _describe_fault(error))
        times = Timestamps(reply.sent, reply.received)
        self._writer.write(request.node, readers, body, times=times, size=size)

    def _read_error(
        self, request: FlowerRequest, error: ReplyError
    ) -> Callable[[], MessageBody]:
        """Return the body of an error; one that comes with arrays is no missing reply."""
        reason = self._reason(request, error)
        if error.has_arrays:
            why = f"it came with an error, {reason}, and with arrays all the same"
            return partial(UnstoredMessage, "weights", why)
        return partial(MissingReply, reason)

    def _read_answer(
        self, request: FlowerRequest, content: ReplyContent
    ) -> Callable[[], MessageBody]:
        """Return what makes the body of a reply, on the thread of the writer."""
        text = ClearText(content, self._reading, self._recipe, self._warnings)
        if request.kind == "evaluate":
            return text.evaluation
        # What the server asked for decides, and not what a client says of its own reply.
        if content.is_masked or (request.is_secure and not content.arrays):
            if self._open is not None:
                self._open.masked[request.node] = text
            return text.unstored
        try:
            start = self._find_start(content.began_in, request.parts)
        except UnstorableError as error:
            return partial(text.unstored, error.kind, str(error))
        return partial(self._updates.read, content, start, text)

    def _find_start(self, began_in: int | None, parts: PackedArrays) -> PackedArrays:
        """Return the model that a client began from, by the round that its reply tells."""
        if not self._reading.began_in:
            return parts
        if began_in is None:
            raise UnstorableError(
                f"it does not tell the round that it began in, {self._reading.began_in!r}",
                "weights",
            )
        for number, start in reversed(self._starts):
            if number == began_in:
                return start
        raise UnstorableError(
            f"it began in round {began_in}, which is not one of the last {MAX_STARTS}",
            "weights",
        )

    def _reason(self, request: FlowerRequest, error: ReplyError) -> str:
        reason = error.name if request.kind == "train" else f"{request.kind}: {error.name}"
        if self._keeps_error_texts and error.text:
            return f"{reason}: {sanitize_text(error.text, MAX_ERROR_LENGTH)}"
        return reason

    def warn_once(self, what: str) -> None:
        """Log a warning, unless it was logged already."""
        self._warnings.warn(what)


@final
@dataclass(frozen=True, slots=True)
class _EarlyReply:
    """A reply that is listed as soon as a round is open."""

    node: Party
    body: Callable[[], MessageBody]
    times: Timestamps
    size: int


@dataclass(slots=True)
class _OpenRound:
    """The open round, which determines how the next message is recorded."""

    parts: PackedArrays
    is_trained: bool = False
    is_answered: bool = False
    waiting: list[FlowerRequest] = field(default_factory=list)
    unannounced: list[FlowerRequest] = field(default_factory=list)
    masked: dict[Party, ClearText] = field(default_factory=dict)

    @property
    def limits(self) -> ReplyLimits:
        """The limits on replies to the model of the round."""
        return ReplyLimits.of_model(len(self.parts), count_bytes(self.parts))

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
        """Return the request of each reply, and remove it from the outstanding ones.

        A reply to the request of another node answers none, so that no node can take the place
        of another one. Flower's server, which knows who sends, may answer for any node.
        """
        by_id = {one.message_id(): one for one in self.waiting}
        by_id.pop("", None)
        by_node = {one.node: one for one in self.waiting if not one.message_id()}
        found = list[FlowerRequest | None]()
        for reply in replies:
            one = by_id.get(reply.reply_to)
            if one is not None and (reply.is_of_server or one.node == reply.node):
                del by_id[reply.reply_to]
            else:
                one = by_node.pop(reply.node, None)
            found.append(one)
            self.is_answered |= one is not None and one.kind == "train"
        matched = {id(one) for one in found}
        self.waiting = [one for one in self.waiting if id(one) not in matched]
        return found

    def end(self) -> None:
        """Drop the outstanding requests."""
        self.waiting.clear()
        self.is_answered = True


def _by_model(requests: Sequence[FlowerRequest]) -> list[list[FlowerRequest]]:
    """Return the requests that have the same model together, in the order of their first."""
    groups = list[list[FlowerRequest]]()
    for one in requests:
        group = next((members for members in groups if members[0].parts == one.parts), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return groups


def _kind_of(error: Exception) -> UnstoredKind:
    return error.kind if isinstance(error, UnstorableError) else "other"


def _describe_fault(error: Exception) -> str:
    """Return why a reply cannot be read; only our own errors have a text that we know."""
    if isinstance(error, UnstorableError):
        return str(error)
    return f"{type(error).__name__} at reading it"


def _decode_broadcast(
    decoder: ArrayDecoder, parts: PackedArrays, config: Mapping[str, str]
) -> Broadcast:
    return Broadcast(decoder.decode_model(parts), config)
