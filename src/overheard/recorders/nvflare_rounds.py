"""Rounds of a transcript from the tasks and results of an NVFlare run."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import final

import torch
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from torch import Tensor

from overheard.core.messages import (
    Broadcast,
    MessageBody,
    MissingReply,
    Timestamps,
    UnstoredMessage,
    Weights,
)
from overheard.core.parties import SERVER, Party, parse_party
from overheard.core.recipe import Recipe
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.nvflare_contents import (
    SiteAnswer,
    UnreadableError,
    WeightsCopy,
    copy_weights,
    make_broadcast,
    read_site_answer,
    read_task_config,
    read_task_weights,
    read_unstored,
)
from overheard.recorders.replies.differences import UnstorableError
from overheard.recorders.replies.limits import NO_MODEL, ReplyLimits
from overheard.recorders.replies.reply_reading import AS_WEIGHTS, ReplyReading
from overheard.recorders.reply_values import sanitize_text

NO_ANSWER = "no answer before the round was over"
"""Reason for a missing reply; replies that arrive later are not recorded."""

MAX_STARTS = 16
"""Most models of earlier rounds that are kept if replies tell the round that they began in."""

MAX_WAITING_BYTES = 2**28
"""Most bytes of replies that wait for the end of their round."""


def site_party(name: object) -> Party:
    """Return a site's party: `client/` and its name, or a digest if that is no file name.

    >>> site_party("site-1"), site_party("a/../b")
    ('client/site-1', 'client/renamed-7324bee3')
    """
    try:
        if "/" not in str(name):
            return parse_party(f"client/{name}")
    except ValueError:
        pass
    digest = blake2b(str(name).encode(errors="replace"), digest_size=4).hexdigest()
    return parse_party(f"client/renamed-{digest}")


@final
@dataclass(slots=True)
class _SentModel:
    """A model that one or more sites received.

    Args:
        source: NVFlare's own arrays; another task with the same objects has the same model.
        weights: a copy; None if they cannot be read.
        config: metadata of the task.
        sent_at: when it was sent, in seconds since 1970.
        readers: sites that received it.
        recorded_readers: sites among these that the transcript already lists as readers.

    """

    source: Mapping[str, object]
    weights: WeightsCopy | None
    config: Mapping[str, str]
    sent_at: float
    readers: set[Party] = field(default_factory=set)
    recorded_readers: frozenset[Party] = frozenset()

    def matches(self, source: Mapping[str, object]) -> bool:
        """Return whether a task with these arrays has the same model."""
        if self.source.keys() != source.keys():
            return False
        if all(source[name] is array for name, array in self.source.items()):
            return True
        try:
            weights = None if self.weights is None else self.weights.read()
            return weights is not None and _are_equal(weights, copy_weights(source).read())
        except UnreadableError:
            return False

    @property
    def limits(self) -> ReplyLimits:
        """The limits on replies to this model."""
        if self.weights is None or not self.weights.size:
            return NO_MODEL
        return ReplyLimits.of_model(len(self.weights.tensors), self.weights.size)

    def read_weights(self) -> Weights | None:
        """Load the weights, to compute a reply's update."""
        return None if self.weights is None else self.weights.read()


@final
@dataclass(frozen=True, slots=True)
class _WaitingAnswer:
    """A reply that is not written yet.

    Args:
        client: its sender.
        model: the model that was sent.
        answer: the reply.
        received_at: when it arrived, in seconds since 1970.
        start: the model that the site began from.

    """

    client: Party
    model: _SentModel
    answer: SiteAnswer
    received_at: float
    start: _SentModel


@final
@dataclass(slots=True)
class _OpenRound:
    """The open round.

    Args:
        number: NVFlare's round number; None if it gives none.
        models: the models sent in the round, usually one.
        clients_and_models: site and model of each task.
        open_tasks: tasks without a reply.
        waiting: replies that are not written yet.
        size: bytes of all replies so far.

    """

    number: int | None
    models: list[_SentModel] = field(default_factory=list)
    clients_and_models: dict[str, tuple[Party, _SentModel]] = field(default_factory=dict)
    open_tasks: set[str] = field(default_factory=set)
    waiting: list[_WaitingAnswer] = field(default_factory=list)
    size: int = 0


@final
class NvflareRoundRecorder:
    """Records the messages of an NVFlare run, round by round.

    A round begins with the first task of a new number, and ends with `end_round` or with the
    next round. Sites fetch the global model one by one, and a fast site may reply before a slow
    one has fetched it. So up to `MAX_WAITING_BYTES` bytes of replies wait for the end of the
    round, when all readers of the model are known. Beyond that the broadcast is written at
    once, and again at the end for later readers.

    Args:
        writer: writes the messages; it is closed at the end.
        seat: the observer; times of messages that it sends are send times, others are arrival
            times.
        sizes: metadata key under which a site reports its number of examples.
        keep_error_texts: whether to record return codes that are not NVFlare's own.
        reading: how replies are read.
        recipe: how sites train, to convert reported steps; None = unknown.

    """

    def __init__(
        self,
        writer: AsyncWriter,
        seat: Party,
        *,
        sizes: str,
        keep_error_texts: bool,
        reading: ReplyReading = AS_WEIGHTS,
        recipe: Recipe | None = None,
    ) -> None:
        self._writer = writer
        self._seat = seat
        self._sizes = sizes
        self._keep_error_texts = keep_error_texts
        self._reading = reading
        self._recipe = recipe
        # Models of earlier rounds, which replies may have begun from.
        self._starts = deque[tuple[int | None, _SentModel]](maxlen=MAX_STARTS)
        self._unanswered = dict[str, Party]()
        self._lock = threading.Lock()
        self._round: _OpenRound | None = None
        self._final: Mapping[str, object] | None = None

    def record_task(
        self, task: str, client: Party, data: Shareable, known: Sequence[Party]
    ) -> None:
        """Record a task that was sent to a site; repeated calls have no effect.

        Args:
            task: id of the task.
            client: the site.
            data: content of the task.
            known: the sites known to take part.

        """
        with self._lock:
            number = data.get_header(AppConstants.CURRENT_ROUND)
            number = number if isinstance(number, int) else None
            current = self._round
            if current is not None and task in current.clients_and_models:
                return
            if current is None or self._is_new_round(current, number, client):
                self._finish()
                current = self._round = _OpenRound(number)
                self._writer.begin_round((SERVER, *known))
            model = self._model(current, data)
            model.readers.add(client)
            current.clients_and_models[task] = client, model
            current.open_tasks.add(task)

    def record_result(self, task: str, result: Shareable) -> None:
        """Record a result that arrived or will be sent; ignore results without an open task."""
        with self._lock:
            current = self._round
            if task in self._unanswered:
                sender = self._unanswered.pop(task)
                self._list(sender, result, "it arrived after the end of its round")
            if current is None or task not in current.open_tasks:
                return
            current.open_tasks.remove(task)
            sender, model = current.clients_and_models[task]
            answer = self._read(result, model.limits)
            start = self._find_start(answer, model)
            if start is None:
                reason = f"it began in round {answer.began_in}, whose model is not kept"
                answer = SiteAnswer(lambda _: UnstoredMessage("weights", reason))
            waiting = _WaitingAnswer(sender, model, answer, time.time(), start or model)
            current.waiting.append(waiting)
            current.size += answer.size
            if current.size > MAX_WAITING_BYTES:
                self._write_waiting(current)

    def list_result(self, task: str, sender: Party, result: Shareable) -> None:
        """List a result of another task than training, which a transcript does not store."""
        with self._lock:
            self._list(sender, result, f"it is the result of the task {sanitize_text(task)!r}")

    def _list(self, sender: Party, result: Shareable, why: str) -> None:
        """Record the clear text of a result that is not stored, and that it was read."""
        if self._round is None:
            return
        try:
            answer = read_unstored(result, why, self._sizes, self._reading, self._recipe)
        # Whatever a site sends, it must not end the recording of the others.
        except Exception as error:
            fault = _describe_fault(error)
            answer = SiteAnswer(partial(replace, fault, reason=f"{why}; {fault.reason}"))
        if answer is not None:
            self._writer.write(
                sender,
                frozenset({SERVER}),
                partial(answer.make_body, None),
                times=self._times(sender, time.time()),
                size=answer.size,
            )

    def record_global_model(self, model: Mapping[str, object]) -> None:
        """Note the server's new global model."""
        with self._lock:
            self._final = model

    def end_round(self) -> None:
        """End the round."""
        with self._lock:
            self._finish()

    def close(self) -> None:
        """End the run with a closing broadcast of the final model, if it is known."""
        with self._lock:
            self._finish()
            if self._final is not None:
                try:
                    closing = copy_weights(self._final)
                except UnreadableError:
                    pass
                else:
                    self._writer.begin_round(())
                    self._writer.write(
                        SERVER,
                        frozenset(),
                        lambda: Broadcast(closing.read()),
                        times=Timestamps(),
                        size=closing.size,
                    )
            self._round = self._final = None
        self._writer.close()

    def _find_start(self, answer: SiteAnswer, model: _SentModel) -> _SentModel | None:
        """Return the model that a site began from; None if it is not known."""
        if answer.began_in is None:
            return model
        found = (one for number, one in reversed(self._starts) if number == answer.began_in)
        return next(found, None)

    def _read(self, result: Shareable, limits: ReplyLimits) -> SiteAnswer:
        try:
            return read_site_answer(
                result,
                self._sizes,
                self._reading,
                self._recipe,
                limits,
                keep_error_texts=self._keep_error_texts,
            )
        # Whatever a site sends, it must not end the recording of the others.
        except Exception as error:
            fault = _describe_fault(error)
            return SiteAnswer(lambda _: fault)

    def _is_new_round(self, current: _OpenRound, number: int | None, client: Party) -> bool:
        if number is not None or current.number is not None:
            return number != current.number
        return any(client == other for other, _ in current.clients_and_models.values())

    def _model(self, current: _OpenRound, data: Shareable) -> _SentModel:
        # The broadcast model replaces an earlier final model.
        self._final = None
        source = read_task_weights(data)
        for model in current.models:
            if model.matches(source):
                return model
        try:
            weights = copy_weights(source)
        except UnreadableError:
            weights = None
        model = _SentModel(source, weights, read_task_config(data), time.time())
        current.models.append(model)
        if self._reading.began_in:
            self._starts.append((current.number, model))
        return model

    def _finish(self) -> None:
        current = self._round
        if current is None:
            return
        self._write_waiting(current)
        for model in current.models:
            self._write_model(model, again=True)
        # In the order of the tasks.
        for task in [task for task in current.clients_and_models if task in current.open_tasks]:
            sender, _ = current.clients_and_models[task]
            self._writer.write(sender, frozenset({SERVER}), lambda: MissingReply(NO_ANSWER))
            self._unanswered[task] = sender
        current.open_tasks.clear()
        self._writer.commit()

    def _write_waiting(self, current: _OpenRound) -> None:
        for answer in current.waiting:
            self._write_model(answer.model)
            self._writer.write(
                answer.client,
                frozenset({SERVER}),
                partial(_body, answer.answer.make_body, answer.start),
                times=self._times(answer.client, answer.received_at),
                size=answer.answer.size,
            )
        current.waiting.clear()

    def _write_model(self, model: _SentModel, *, again: bool = False) -> None:
        new_readers = frozenset(model.readers - model.recorded_readers)
        if not new_readers or (model.recorded_readers and not again):
            return
        model.recorded_readers |= new_readers
        self._writer.write(
            SERVER,
            new_readers,
            partial(make_broadcast, model.weights, model.config),
            times=self._times(SERVER, model.sent_at),
            size=0 if model.weights is None else model.weights.size,
        )

    def _times(self, sender: Party, moment: float) -> Timestamps:
        return Timestamps(sent=moment) if sender == self._seat else Timestamps(received=moment)


def _body(make_body: Callable[[Weights | None], MessageBody], model: _SentModel) -> MessageBody:
    try:
        return make_body(model.read_weights())
    # As above.
    except Exception as error:
        return _describe_fault(error)


def _describe_fault(error: Exception) -> UnstoredMessage:
    """Return why a reply cannot be read; only our own errors have a text that we know."""
    if isinstance(error, UnstorableError):
        return UnstoredMessage(error.kind, str(error))
    return UnstoredMessage("other", f"it cannot be read ({type(error).__name__})")


def _are_equal(weights: Mapping[str, Tensor], other_weights: Mapping[str, Tensor]) -> bool:
    return all(
        other_weights[name].dtype == one.dtype and torch.equal(other_weights[name], one)
        for name, one in weights.items()
    )
