"""Makes rounds of a transcript out of what a Flower server asks and what it is answered."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from time import time
from typing import final

from flwr.app import Message, MessageType, Metadata
from flwr.common.constant import ErrorCode

from overheard.core.messages import Body, Broadcast, Evaluation, Missing, Times, Update
from overheard.core.messages import Message as TranscriptMessage
from overheard.core.parties import SERVER, Party, client
from overheard.recorders.flower_arrays import Decoder, Parts, parts_of, size_of
from overheard.recorders.flower_contents import SIZES, Told, config_in, plain, told_in
from overheard.recorders.scribe import Scribe

LONGEST_ERROR = 10_000
"""Characters of an error's text that are kept."""

RECORDED = (MessageType.TRAIN, MessageType.EVALUATE)
"""The kinds of messages that a transcript has a place for."""


def is_recorded(message: Message) -> bool:
    """Whether a transcript has a place for messages of its kind."""
    return _kind(message) in RECORDED


_CODES = {code: name for name, code in vars(ErrorCode).items() if isinstance(code, int)}
_TO_SERVER = frozenset({SERVER})
_LOG = logging.getLogger("overheard")


@final
class FlowerRounds:
    """Tells a scribe of a Flower run, one round after the other.

    A round begins with the model that nodes are to train. The model that they are to evaluate
    begins one too, since it is what the round before came to; if they then train the same, that
    is the same round. A node is the party `client/<node id>`.

    Not safe for several threads at once.

    Args:
        scribe: who writes it down.
        sizes: under which names nodes tell how many examples they used.
        keep_error_texts: whether to record what errors say, which may quote a client's data,
            and not their kind alone.
        decoder: of a run that is gone on with; None = of a new one.

    """

    def __init__(
        self,
        scribe: Scribe,
        *,
        sizes: tuple[str, ...] = SIZES,
        keep_error_texts: bool = False,
        decoder: Decoder | None = None,
    ) -> None:
        """Begin with a run in which nothing was asked."""
        self._scribe = scribe
        self._sizes = sizes
        self._keeps_error_texts = keep_error_texts
        self._decoder = decoder or Decoder()
        self._open: _Round | None = None
        self._nodes = set[Party]()
        self._warned = set[str]()

    def say_again(self, parts: Parts, messages: Sequence[TranscriptMessage]) -> None:
        """Begin with a round in which this was said before, and nobody trained yet.

        Args:
            parts: the model of the round, which its broadcasts hold.
            messages: those of the round.

        """
        self._begin(parts)
        for one in messages:
            said = one.body
            if isinstance(said, Broadcast):
                body: Callable[[], Body] = partial(
                    _broadcast, self._decoder, parts, said.config
                )
            else:
                body = partial(replace, said)
            self._scribe.say(one.sender, one.readers, body, times=one.times)

    def known(self, nodes: Iterable[int]) -> None:
        """Note that these nodes take part, though nobody asked them yet."""
        self._nodes.update(map(client, nodes))

    def asked(self, messages: Sequence[Message]) -> None:
        """Note what is about to be sent to nodes."""
        for kind in RECORDED:
            these = [one for one in messages if _kind(one) == kind]
            if these:
                self._ask(kind, these)
        for other in sorted({_kind(one) for one in messages}.difference(RECORDED)):
            self._warn(f"messages of the kind {plain(other)!r} are not recorded")

    def announce(self) -> None:
        """Have the model written down that was last sent out; else it waits for an answer."""
        if self._open is not None and self._open.unannounced:
            self._announce(self._open)
            self._open.unannounced.clear()

    def came(self, replies: Sequence[Message]) -> None:
        """Note the answers that just came, in this order."""
        received = time()
        self.announce()
        by = [None] * len(replies) if self._open is None else self._open.answered(replies)
        for asked, reply in zip(by, replies, strict=True):
            if asked is not None:
                self._answer(asked, reply, received)
            elif is_recorded(reply):
                self._warn("answers that came after their round was over are not recorded")

    def over(self) -> None:
        """Note that nobody is waited for any more."""
        if self._open is None:
            return
        self.announce()
        for asked in self._open.waiting:
            self._scribe.say(
                asked.node, _TO_SERVER, partial(Missing, f"no answer to {asked.kind}")
            )
        self._open.end()
        self._scribe.commit()

    def end_with(self, parts: Parts) -> None:
        """Note the model that the run came to, if nobody was sent it."""
        self.over()
        if self._open is None or self._open.is_trained:
            self._begin(parts)
            self._scribe.say(SERVER, frozenset(), partial(_broadcast, self._decoder, parts, {}))
            self._scribe.commit()

    def _ask(self, kind: str, messages: Sequence[Message]) -> None:
        asked = _sent(kind, messages)
        groups = list[list[_Asked]]()
        for one in asked:
            group = next((held for held in groups if held[0].parts == one.parts), None)
            if group is None:
                groups.append([one])
            else:
                group.append(one)
        if len(groups) > 1:
            self._warn(
                "nodes were sent different models: the one that most were sent is recorded, "
                "and each update relative to the one that its node was sent"
            )
        parts = max(groups, key=len)[0].parts
        self._nodes.update(one.node for one in asked)
        if self._open is None or not self._open.takes(kind, parts):
            self.over()
            self._begin(parts)
        assert self._open is not None
        self._open.add(kind, asked)

    def _begin(self, parts: Parts) -> None:
        self._scribe.begin((SERVER, *sorted(self._nodes)))
        self._open = _Round(parts)

    def _announce(self, begun: "_Round") -> None:
        asked = begun.unannounced
        first = next((one for one in asked if one.parts == begun.parts), asked[0])
        self._scribe.say(
            SERVER,
            frozenset(one.node for one in asked),
            partial(_broadcast, self._decoder, begun.parts, first.config),
            times=Times(_seconds(first.metadata)),
        )

    def _answer(self, asked: "_Asked", reply: Message, received: float) -> None:
        def say(body: Callable[[], Body], size: int = 0) -> None:
            times = Times(_seconds(reply.metadata), received)
            self._scribe.say(asked.node, _TO_SERVER, body, times=times, size=size)

        if reply.has_error():
            return say(partial(Missing, self._reason(asked, reply)))
        try:
            told, sent = told_in(reply.content, self._sizes), parts_of(reply.content)
        # Whatever is wrong with it is its sender's doing.
        except Exception as error:
            return say(partial(Missing, f"not recorded: {type(error).__name__} at reading it"))
        if told.unrecorded:
            self._warn(
                "answers tell what a transcript has no place for: texts, NaN and infinities "
                "are left out"
            )
        if asked.kind == MessageType.EVALUATE:
            return say(partial(Evaluation, told.metrics, told.examples))
        return say(partial(_update, self._decoder, sent, asked.parts, told), size_of(sent))

    def _reason(self, asked: "_Asked", reply: Message) -> str:
        name = _CODES.get(reply.error.code, f"error {reply.error.code}")
        reason = name if asked.kind == MessageType.TRAIN else f"{asked.kind}: {name}"
        if self._keeps_error_texts and reply.error.reason:
            return f"{reason}: {plain(reply.error.reason, LONGEST_ERROR)}"
        return reason

    def _warn(self, what: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            _LOG.warning("overheard: %s", what)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What one node was asked; its message gets a number only when it is sent."""

    node: Party
    kind: str
    metadata: Metadata
    parts: Parts
    config: Mapping[str, str]


@dataclass(slots=True)
class _Round:
    """The round that goes on; what the next message is taken for hangs on it."""

    parts: Parts
    is_trained: bool = False
    is_answered: bool = False
    waiting: list[_Asked] = field(default_factory=list)
    unannounced: list[_Asked] = field(default_factory=list)

    def takes(self, kind: str, parts: Parts) -> bool:
        """Whether the model, sent to be trained or evaluated, is this round's."""
        is_over = self.is_trained and (kind == MessageType.EVALUATE or self.is_answered)
        return not is_over and self.parts == parts

    def add(self, kind: str, asked: Sequence[_Asked]) -> None:
        """Wait for these."""
        if kind == MessageType.TRAIN:
            self.is_trained = True
        self.waiting.extend(asked)
        self.unannounced.extend(asked)

    def answered(self, replies: Sequence[Message]) -> list[_Asked | None]:
        """Whom of those waited for each comes from; they are waited for no more."""
        by_number = {one.metadata.message_id: one for one in self.waiting}
        by_number.pop("", None)
        by_node = {one.node: one for one in self.waiting if not one.metadata.message_id}
        found = list[_Asked | None]()
        for reply in replies:
            one = by_number.pop(reply.metadata.reply_to_message_id, None) or by_node.pop(
                client(reply.metadata.src_node_id), None
            )
            found.append(one)
            self.is_answered |= one is not None and one.kind == MessageType.TRAIN
        gone = {id(one) for one in found}
        self.waiting = [one for one in self.waiting if id(one) not in gone]
        return found

    def end(self) -> None:
        """Wait for nobody any more."""
        self.waiting.clear()
        self.is_answered = True


def _sent(kind: str, messages: Sequence[Message]) -> list[_Asked]:
    """What is sent to each; most often the same content to all, which is read once."""
    read = dict[int, tuple[Parts, Mapping[str, str]]]()
    asked = []
    for one in messages:
        content = one.content
        if id(content) not in read:
            read[id(content)] = parts_of(content), config_in(content)
        parts, config = read[id(content)]
        node = client(one.metadata.dst_node_id)
        asked.append(_Asked(node, kind, one.metadata, parts, config))
    return asked


def _broadcast(decoder: Decoder, parts: Parts, config: Mapping[str, str]) -> Broadcast:
    return Broadcast(decoder.model(parts), config)


def _update(decoder: Decoder, sent: Parts, start: Parts, told: Told) -> Update:
    return Update(decoder.change(sent, start), told.examples, told.metrics)


def _kind(message: Message) -> str:
    """Such as "train", also of "train.my_action"."""
    kind: str = message.metadata.message_type.partition(".")[0]
    return kind


def _seconds(metadata: Metadata) -> float | None:
    """When a message says that it was made; None where it says what cannot be."""
    made = metadata.created_at
    return float(made) if isinstance(made, int | float) and isfinite(made) else None
