"""Puts the tasks and results of an NVFlare run into the rounds of a transcript."""

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

from overheard.core.messages import Body, Broadcast, Missing, Times, Weights
from overheard.core.parties import SERVER, Party, party
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
"""Why an answer is missing that was awaited; one that comes later is not recorded."""

MOST_HELD = 2**28
"""Bytes of answers that wait for the end of their round."""


def site(name: object) -> Party:
    """A site's party: `client/` and its name or, where that is unfit for a file, its digest.

    >>> site("site-1"), site("a/../b")
    ('client/site-1', 'client/renamed-7324bee3')
    """
    try:
        if "/" not in str(name):
            return party(f"client/{name}")
    except ValueError:
        pass
    digest = blake2b(str(name).encode(errors="replace"), digest_size=4).hexdigest()
    return party(f"client/renamed-{digest}")


@final
@dataclass(slots=True)
class _Model:
    """What one or more sites were sent, all of them the same.

    Args:
        source: the arrays as NVFlare holds them: another task that brings these very objects
            brings the same.
        weights: a copy; None where they cannot be read.
        config: what travelled beside them.
        moment: seconds since 1970.
        readers: who was sent it.
        told: those of them of whom the transcript says so.

    """

    source: Mapping[str, object]
    weights: Copied | None
    config: Mapping[str, str]
    moment: float
    readers: set[Party] = field(default_factory=set)
    told: frozenset[Party] = frozenset()

    def brings(self, source: Mapping[str, object]) -> bool:
        """Whether a task with these arrays brings the same model."""
        if self.source.keys() != source.keys():
            return False
        if all(source[name] is held for name, held in self.source.items()):
            return True
        try:
            here = None if self.weights is None else self.weights.read()
            return here is not None and _are_alike(here, copied(source).read())
        except UnreadableError:
            return False

    def sent(self) -> Weights | None:
        """The weights, to hold an answer against."""
        return None if self.weights is None else self.weights.read()


@final
@dataclass(frozen=True, slots=True)
class _Held:
    """An answer that came at a moment, in seconds since 1970."""

    who: Party
    model: _Model
    answer: SiteAnswer
    moment: float


@final
@dataclass(slots=True)
class _Round:
    """A round that is not over.

    Args:
        number: as NVFlare counts; None where it does not say.
        models: what was sent in it, mostly one.
        asked: by task, who was asked and with which model.
        open: the tasks that were not answered.
        held: answers that the scribe was not told yet.
        size: bytes of all answers so far.

    """

    number: int | None
    models: list[_Model] = field(default_factory=list)
    asked: dict[str, tuple[Party, _Model]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    held: list[_Held] = field(default_factory=list)
    size: int = 0


@final
class NvflareRounds:
    """Tells a scribe what is said in a run, round by round.

    A round begins with the first task of another number, and ends with `finish` or with the
    next one. Sites fetch the global model one by one, and a fast one answers before a slow one
    has fetched. So answers of up to `MOST_HELD` bytes wait until the round ends and it is known
    who was sent the model. Beyond that it is told at once, and again at the end for those who
    fetched it later.

    Args:
        scribe: writes it down, and is closed at the end.
        seat: who listens: its clock is the sender's where it sends.
        sizes: the metadata under which a site says how many examples it has.
        keep_error_texts: whether return codes are kept that are none of NVFlare's own.

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

    def asked(self, task: str, who: Party, data: Shareable, known: Sequence[Party]) -> None:
        """A task was sent to a site, maybe again.

        Args:
            task: its id.
            who: the site.
            data: what is sent.
            known: who takes part, as far as is known.

        """
        with self._lock:
            number = data.get_header(AppConstants.CURRENT_ROUND)
            number = number if isinstance(number, int) else None
            here = self._round
            if here is not None and task in here.asked:
                return
            if here is None or self._is_another(here, number, who):
                self._finish()
                here = self._round = _Round(number)
                self._scribe.begin((SERVER, *known))
            model = self._model(here, data)
            model.readers.add(who)
            here.asked[task] = who, model
            here.open.add(task)

    def answered(self, task: str, result: Shareable) -> None:
        """A result came, or is about to be sent; one that nobody waits for is passed over."""
        with self._lock:
            here = self._round
            if here is None or task not in here.open:
                return
            here.open.remove(task)
            who, model = here.asked[task]
            answer = self._read(result)
            here.held.append(_Held(who, model, answer, time.time()))
            here.size += answer.size
            if here.size > MOST_HELD:
                self._release(here)

    def became(self, model: Mapping[str, object]) -> None:
        """The server arrived at this global model."""
        with self._lock:
            self._final = model

    def finish(self) -> None:
        """No more answers are awaited in this round."""
        with self._lock:
            self._finish()

    def close(self) -> None:
        """The run is over: the model that it came to closes the transcript, if it is known."""
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
                        times=Times(),
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
            return SiteAnswer(lambda _: Missing(f"not recorded: it cannot be read ({kind})"))

    def _is_another(self, here: _Round, number: int | None, who: Party) -> bool:
        if number is not None or here.number is not None:
            return number != here.number
        return any(who == asked for asked, _ in here.asked.values())

    def _model(self, here: _Round, data: Shareable) -> _Model:
        # Whatever the server arrived at before, it is this that it sent.
        self._final = None
        source = weights_in(data)
        for model in here.models:
            if model.brings(source):
                return model
        try:
            weights = copied(source)
        except UnreadableError:
            weights = None
        model = _Model(source, weights, config_in(data), time.time())
        here.models.append(model)
        return model

    def _finish(self) -> None:
        here = self._round
        if here is None:
            return
        self._release(here)
        for model in here.models:
            self._tell(model, again=True)
        # In the order in which they were asked.
        for task in [task for task in here.asked if task in here.open]:
            who, _ = here.asked[task]
            self._scribe.say(who, frozenset({SERVER}), lambda: Missing(NO_ANSWER))
        here.open.clear()
        self._scribe.commit()

    def _release(self, here: _Round) -> None:
        for held in here.held:
            self._tell(held.model)
            self._scribe.say(
                held.who,
                frozenset({SERVER}),
                partial(_body, held.answer.body, held.model),
                times=self._times(held.who, held.moment),
                size=held.answer.size,
            )
        here.held.clear()

    def _tell(self, model: _Model, *, again: bool = False) -> None:
        untold = frozenset(model.readers - model.told)
        if not untold or (model.told and not again):
            return
        model.told |= untold
        self._scribe.say(
            SERVER,
            untold,
            partial(broadcast, model.weights, model.config),
            times=self._times(SERVER, model.moment),
        )

    def _times(self, sender: Party, moment: float) -> Times:
        return Times(sent=moment) if sender == self._seat else Times(received=moment)


def _body(said: Callable[[Weights | None], Body], model: _Model) -> Body:
    try:
        return said(model.sent())
    # As above.
    except Exception as error:
        return Missing(f"not recorded: it cannot be read ({type(error).__name__})")


def _are_alike(here: Mapping[str, Tensor], there: Mapping[str, Tensor]) -> bool:
    return all(
        there[name].dtype == one.dtype and torch.equal(there[name], one)
        for name, one in here.items()
    )
