"""Rounds of a transcript from the tasks and results of an NVFlare run."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import final

import torch
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from torch import Tensor

from overheard.core.messages import Broadcast, MessageBody, MissingReply, Timestamps, Weights
from overheard.core.parties import SERVER, Party, parse_party
from overheard.recorders.nvflare_contents import (
    Copied,
    SiteAnswer,
    UnreadableError,
    answer_in,
    broadcast,
    config_in,
    copied,
    weights_in,
)
from overheard.recorders.scribe import Scribe

NO_ANSWER = "no answer before the round was over"
"""Reason for a missing reply; replies that arrive later are not recorded."""

MOST_HELD = 2**28
"""Most bytes of replies that wait for the end of their round."""


def site(name: object) -> Party:
    """Return a site's party: `client/` and its name, or a digest if that is no file name.

    >>> site("site-1"), site("a/../b")
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
class _Model:
    """A model that one or more sites received.

    Args:
        source: NVFlare's own arrays; another task with the same objects has the same model.
        weights: a copy; None if they cannot be read.
        config: metadata of the task.
        moment: when it was sent, in seconds since 1970.
        readers: sites that received it.
        told: sites among these that the transcript already lists as readers.

    """

    source: Mapping[str, object]
    weights: Copied | None
    config: Mapping[str, str]
    moment: float
    readers: set[Party] = field(default_factory=set)
    told: frozenset[Party] = frozenset()

    def brings(self, source: Mapping[str, object]) -> bool:
        """Return whether a task with these arrays has the same model."""
        if self.source.keys() != source.keys():
            return False
        if all(source[name] is array for name, array in self.source.items()):
            return True
        try:
            weights = None if self.weights is None else self.weights.read()
            return weights is not None and _are_alike(weights, copied(source).read())
        except UnreadableError:
            return False

    def sent(self) -> Weights | None:
        """Load the weights, to compute a reply's update."""
        return None if self.weights is None else self.weights.read()


@final
@dataclass(frozen=True, slots=True)
class _Held:
    """A reply that is not written yet, with its arrival time in seconds since 1970."""

    who: Party
    model: _Model
    answer: SiteAnswer
    moment: float


@final
@dataclass(slots=True)
class _Round:
    """The open round.

    Args:
        number: NVFlare's round number; None if it gives none.
        models: the models sent in the round, usually one.
        asked: site and model of each task.
        open: tasks without a reply.
        held: replies that are not written yet.
        size: bytes of all replies so far.

    """

    number: int | None
    models: list[_Model] = field(default_factory=list)
    asked: dict[str, tuple[Party, _Model]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    held: list[_Held] = field(default_factory=list)
    size: int = 0


@final
class NvflareRounds:
    """Records the messages of an NVFlare run, round by round.

    A round begins with the first task of a new number, and ends with `finish` or with the next
    round. Sites fetch the global model one by one, and a fast site may reply before a slow one
    has fetched it. So up to `MOST_HELD` bytes of replies wait for the end of the round, when
    all readers of the model are known. Beyond that the broadcast is written at once, and again
    at the end for later readers.

    Args:
        scribe: writes the messages; it is closed at the end.
        seat: the observer; times of messages that it sends are send times, others are arrival
            times.
        sizes: metadata key under which a site reports its number of examples.
        keep_error_texts: whether to record return codes that are not NVFlare's own.

    """

    def __init__(
        self, scribe: Scribe, seat: Party, *, sizes: str, keep_error_texts: bool
    ) -> None:
        self._scribe = scribe
        self._seat = seat
        self._sizes = sizes
        self._keep_error_texts = keep_error_texts
        self._lock = threading.Lock()
        self._round: _Round | None = None
        self._final: Mapping[str, object] | None = None

    def asked(self, task: str, client: Party, data: Shareable, known: Sequence[Party]) -> None:
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
            if current is not None and task in current.asked:
                return
            if current is None or self._is_new_round(current, number, client):
                self._finish()
                current = self._round = _Round(number)
                self._scribe.begin((SERVER, *known))
            model = self._model(current, data)
            model.readers.add(client)
            current.asked[task] = client, model
            current.open.add(task)

    def answered(self, task: str, result: Shareable) -> None:
        """Record a result that arrived or will be sent; ignore results without an open task."""
        with self._lock:
            current = self._round
            if current is None or task not in current.open:
                return
            current.open.remove(task)
            sender, model = current.asked[task]
            answer = self._read(result)
            current.held.append(_Held(sender, model, answer, time.time()))
            current.size += answer.size
            if current.size > MOST_HELD:
                self._release(current)

    def became(self, model: Mapping[str, object]) -> None:
        """Note the server's new global model."""
        with self._lock:
            self._final = model

    def finish(self) -> None:
        """End the round."""
        with self._lock:
            self._finish()

    def close(self) -> None:
        """End the run with a closing broadcast of the final model, if it is known."""
        with self._lock:
            self._finish()
            if self._final is not None:
                try:
                    closing = copied(self._final)
                except UnreadableError:
                    pass
                else:
                    self._scribe.begin(())
                    self._scribe.say(
                        SERVER,
                        frozenset(),
                        lambda: Broadcast(closing.read()),
                        times=Timestamps(),
                        size=closing.size,
                    )
            self._round = self._final = None
        self._scribe.close()

    def _read(self, result: Shareable) -> SiteAnswer:
        try:
            return answer_in(result, self._sizes, keep_error_texts=self._keep_error_texts)
        # Whatever a site sends, it must not end the recording of the others.
        except Exception as error:
            kind = type(error).__name__
            return SiteAnswer(
                lambda _: MissingReply(f"not recorded: it cannot be read ({kind})")
            )

    def _is_new_round(self, current: _Round, number: int | None, client: Party) -> bool:
        if number is not None or current.number is not None:
            return number != current.number
        return any(client == other for other, _ in current.asked.values())

    def _model(self, current: _Round, data: Shareable) -> _Model:
        # The broadcast model replaces an earlier final model.
        self._final = None
        source = weights_in(data)
        for model in current.models:
            if model.brings(source):
                return model
        try:
            weights = copied(source)
        except UnreadableError:
            weights = None
        model = _Model(source, weights, config_in(data), time.time())
        current.models.append(model)
        return model

    def _finish(self) -> None:
        current = self._round
        if current is None:
            return
        self._release(current)
        for model in current.models:
            self._tell(model, again=True)
        # In the order of the tasks.
        for task in [task for task in current.asked if task in current.open]:
            sender, _ = current.asked[task]
            self._scribe.say(sender, frozenset({SERVER}), lambda: MissingReply(NO_ANSWER))
        current.open.clear()
        self._scribe.commit()

    def _release(self, current: _Round) -> None:
        for answer in current.held:
            self._tell(answer.model)
            self._scribe.say(
                answer.who,
                frozenset({SERVER}),
                partial(_body, answer.answer.body, answer.model),
                times=self._times(answer.who, answer.moment),
                size=answer.answer.size,
            )
        current.held.clear()

    def _tell(self, model: _Model, *, again: bool = False) -> None:
        new_readers = frozenset(model.readers - model.told)
        if not new_readers or (model.told and not again):
            return
        model.told |= new_readers
        self._scribe.say(
            SERVER,
            new_readers,
            partial(broadcast, model.weights, model.config),
            times=self._times(SERVER, model.moment),
        )

    def _times(self, sender: Party, moment: float) -> Timestamps:
        return Timestamps(sent=moment) if sender == self._seat else Timestamps(received=moment)


def _body(make_body: Callable[[Weights | None], MessageBody], model: _Model) -> MessageBody:
    try:
        return make_body(model.sent())
    # As above.
    except Exception as error:
        return MissingReply(f"not recorded: it cannot be read ({type(error).__name__})")


def _are_alike(weights: Mapping[str, Tensor], other_weights: Mapping[str, Tensor]) -> bool:
    return all(
        other_weights[name].dtype == one.dtype and torch.equal(other_weights[name], one)
        for name, one in weights.items()
    )
