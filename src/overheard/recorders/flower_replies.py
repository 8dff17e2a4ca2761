"""Requests and replies of a Flower run, and the updates that replies mean."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, final

from overheard.core.messages import (
    Aggregate,
    Evaluation,
    MessageBody,
    UnstoredKind,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.recorders.async_writer import make_unstored
from overheard.recorders.flower_arrays import ArrayDecoder, PackedArrays, align_records
from overheard.recorders.replies.differences import Scales, UnstorableError, list_names
from overheard.recorders.replies.limits import ReplyLimits
from overheard.recorders.replies.reply_reading import ReplyReading
from overheard.recorders.replies.secure_aggregation import MASKED, leads_to
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
        read_metadata: reads its metadata, on the thread of the writer.
        record: the name of its only record of arrays; "" = it has several, or no names.
        read_named: reads the numbers of the record that tells the scales of codes.
        began_in: number of the round whose model the client began from; None = not told.
        is_masked: whether the recorder found its arrays to be the mean of secure aggregation.
        size: bytes in memory until it is read.

    """

    arrays: PackedArrays
    read_metadata: Callable[[], AnswerMetadata]
    record: str = ""
    read_named: Callable[[], Mapping[str, float]] = dict
    began_in: int | None = None
    is_masked: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True)
class ReplyError:
    """The error that a node sent in place of a reply.

    Args:
        name: its code.
        text: what the node says of it, which may quote its data.
        has_arrays: whether it came with arrays all the same, which the server can read.

    """

    name: str
    text: str = ""
    has_arrays: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FlowerReply:
    """A reply of one node.

    Args:
        node: the node.
        read: reads the content or the error within limits, and may raise any error.
        sent: when the reply was made, in seconds since 1970; None = unknown.
        received: when it arrived; None = unknown.
        reply_to: number of the request's message; "" = unknown.
        has_only_keys: whether it has keys or shares of secure aggregation, and nothing else.
        is_of_server: whether Flower's own server reports, in place of a node, that none came.

    """

    node: Party
    read: Callable[[ReplyLimits], ReplyContent | ReplyError]
    sent: float | None = None
    received: float | None = None
    reply_to: str = ""
    has_only_keys: bool = False
    is_of_server: bool = False


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
class ClearText:
    """What a reply tells beside its arrays, read once, on the thread of the writer.

    Args:
        content: the reply.
        reading: how replies are read.
        recipe: how clients train, to convert reported steps; None = unknown.
        warnings: logs what is not recorded.

    """

    def __init__(
        self,
        content: ReplyContent,
        reading: ReplyReading,
        recipe: Recipe | None,
        warnings: OnceLog,
    ) -> None:
        """Read nothing yet."""
        self._content = content
        self._reading = reading
        self._recipe = recipe
        self._warnings = warnings

    @cached_property
    def metadata(self) -> AnswerMetadata:
        """The metadata of the reply; what is not recorded of it is logged."""
        metadata = self._content.read_metadata()
        if metadata.unrecorded:
            self._warnings.warn(
                "replies contain values that a transcript cannot store: NaN and infinities are "
                "omitted"
            )
        if metadata.texts:
            self._warnings.warn(
                f"replies contain texts or bytes in clear text ({list_names(metadata.texts)}): "
                "their names are recorded, and not their content",
                "texts",
            )
        return metadata

    @property
    def scales(self) -> Scales | None:
        """The scales of codes that the reply or the app states."""
        return self._reading.find_scales(self.metadata.metrics, self._content.read_named())

    @property
    def examples(self) -> int | None:
        """The number of training examples; None if none is told, or it cannot be read."""
        # Any error here comes from the sender's content.
        try:
            return self._reading.count_examples(self.metadata.examples, self._recipe)
        except Exception:
            return None

    def unstored(self, kind: UnstoredKind = "masked", reason: str = MASKED) -> UnstoredMessage:
        """Return the reply as a message whose arrays are not stored."""
        metadata = self.metadata
        metrics = dict(metadata.metrics)
        if self._reading.count_unit != "examples" and metadata.examples is not None:
            metrics[metadata.size] = metadata.examples
        return UnstoredMessage(kind, reason, self.examples, metrics, metadata.texts)

    def evaluation(self) -> Evaluation:
        """Return the reply as an evaluation."""
        metadata = self.metadata
        return Evaluation(metadata.metrics, metadata.examples, metadata.texts)

    def listed(self, kind: UnstoredKind, reason: str) -> UnstoredMessage:
        """Return the reply as one that answers no request to train."""
        metadata = self.metadata
        return UnstoredMessage(
            kind, reason, metadata.examples, metadata.metrics, metadata.texts
        )


@final
@dataclass(frozen=True, slots=True)
class UpdateReader:
    """Reads updates on the thread of the writer, to which it does not refer."""

    decoder: ArrayDecoder
    reading: ReplyReading
    warnings: OnceLog

    def read(self, content: ReplyContent, start: PackedArrays, text: ClearText) -> MessageBody:
        """Return the update that a reply means, or else its clear text and why it has none."""
        reading, clear = self.reading, text.unstored()
        if not content.arrays:
            return replace(clear, kind="other", reason="it has no arrays")
        # Any error here comes from the sender's content.
        try:
            sent = align_records(content.arrays, content.record, start)
            update = self.decoder.decode_update(
                sent, start, reading.kind, reading.rate, text.scales
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
    masked: Mapping[Party, ClearText],
) -> Aggregate:
    """Decode the mean of masked replies; if `after` is given, it must lead to that model."""
    known = [size for one in masked.values() if (size := one.examples) is not None]
    examples = sum(known) if len(known) == len(masked) else None
    delta = decoder.decode_update(mean, start, reading.kind, reading.rate).delta
    if after is not None:
        models = [decoder.decode_model(one) for one in (start, after)]
        if not leads_to(delta, *models):
            raise UnstorableError(
                "all replies are one object, which does not lead to the next model", "weights"
            )
    return Aggregate(delta, frozenset(masked), examples)
