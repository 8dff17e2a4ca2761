"""Requests and replies of a Flower run, and the updates that replies mean."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

from overheard.core.messages import Aggregate, MessageBody, UnstoredMessage, Update
from overheard.core.parties import Party
from overheard.recorders.async_writer import make_unstored
from overheard.recorders.flower_arrays import ArrayDecoder, PackedArrays, align_records
from overheard.recorders.replies.differences import Scales, UnstorableError, list_names
from overheard.recorders.replies.reply_reading import ReplyReading
from overheard.recorders.replies.secure_aggregation import leads_to
from overheard.recorders.reply_values import AnswerMetadata

RequestKind = Literal["train", "evaluate"]

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
        is_secure: whether secure aggregation masks the reply for the server.

    """

    node: Party
    kind: RequestKind
    parts: PackedArrays
    config: Mapping[str, str]
    sent: float | None = None
    message_id: Callable[[], str] = str
    is_secure: bool = False


@dataclass(frozen=True, slots=True)
class ReplyContent:
    """What a reply contains, if it contains no error.

    Args:
        arrays: its arrays.
        metadata: its metadata.
        record: the name of its only record of arrays; "" = it has several, or no names.
        scales: the scales of codes that the reply or the app states.
        began_in: number of the round whose model the client began from; None = not told.
        is_masked: whether the recorder found its arrays to be the mean of secure aggregation.

    """

    arrays: PackedArrays
    metadata: AnswerMetadata
    record: str = ""
    scales: Scales | None = None
    began_in: int | None = None
    is_masked: bool = False


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
        has_only_keys: whether it has keys or shares of secure aggregation, and nothing else.

    """

    node: Party
    read: Callable[[], ReplyContent | ReplyError]
    sent: float | None = None
    received: float | None = None
    reply_to: str = ""
    has_only_keys: bool = False


@final
class OnceLog:
    """Logs each kind of warning once."""

    def __init__(self) -> None:
        self._kinds = set[str]()

    def warn(self, what: str, kind: str = "") -> None:
        """Log a warning, unless it, or another one of its kind, was logged already."""
        if (kind or what) not in self._kinds:
            self._kinds.add(kind or what)
            _LOG.warning("overheard: %s", what)


@final
@dataclass(frozen=True, slots=True)
class UpdateReader:
    """Reads updates on the thread of the writer, to which it does not refer."""

    decoder: ArrayDecoder
    reading: ReplyReading
    warnings: OnceLog

    def read(
        self, content: ReplyContent, start: PackedArrays, clear: UnstoredMessage
    ) -> MessageBody:
        """Return the update that a reply means, or else its clear text and why it has none."""
        reading = self.reading
        if not content.arrays:
            return replace(clear, kind="other", reason="it has no arrays")
        # Any error here comes from the sender's content.
        try:
            sent = align_records(content.arrays, content.record, start)
            update = self.decoder.decode_update(
                sent, start, reading.kind, reading.rate, content.scales
            )
        except Exception as error:
            unstored = make_unstored(error)
            self.warnings.warn(f"replies are not stored: {unstored.reason}", "unstored")
            return replace(clear, kind=unstored.kind, reason=unstored.reason)
        if update.absent:
            names = list_names(update.absent)
            self.warnings.warn(f"replies lack {names}: they count as unchanged", "absent")
        if update.extra:
            names = list_names(update.extra)
            what = f"replies have {names}, which the broadcast lacks: they are not recorded"
            self.warnings.warn(what, "extra")
        return Update(
            update.delta,
            clear.examples,
            clear.metrics,
            texts=clear.texts,
            absent=update.absent,
        )


def decode_mean(
    decoder: ArrayDecoder,
    reading: ReplyReading,
    mean: PackedArrays,
    start: PackedArrays,
    after: PackedArrays | None,
    cohort: frozenset[Party],
    examples: int | None,
) -> Aggregate:
    """Decode the mean of masked replies; if `after` is given, it must lead to that model."""
    delta = decoder.decode_update(mean, start, reading.kind, reading.rate).delta
    if after is not None:
        models = [decoder.decode_model(one) for one in (start, after)]
        if not leads_to(delta, *models):
            raise UnstorableError(
                "all replies are one object, which does not lead to the next model", "weights"
            )
    return Aggregate(delta, cohort, examples)
