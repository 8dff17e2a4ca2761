"""A target's models after training, by round."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from overheard.core.messages import Broadcast, Update, Weights, apply_update
from overheard.core.parties import COHORT, Party
from overheard.core.view import View


@final
@dataclass(frozen=True, slots=True)
class TargetModels:
    """A target's model after training in each round, if it can be read.

    The model of round t is the broadcast of round t plus the update in reply, and was trained
    on the data of round t. For `COHORT` it is the mean of the models, weighted by numbers
    of examples, of all clients but the observers, as `View.updates` removes the observers'
    own influence. In a federation of two it is exactly the other client's model.

    Args:
        view: the view of the observers.
        target: the target.
        extract: False = for `COHORT`, use the unchanged broadcast of round t + 1 for round t,
            including the observers' own influence. If a client's own updates are readable,
            there is nothing to extract and this has no effect.

    """

    view: View
    target: Party
    extract: bool = True

    def rounds(self) -> tuple[int, ...]:
        """Return the rounds with a readable model, in order, without reading weights."""
        with_updates = self.view.rounds_with_updates(self.target)
        readable = (
            self._models_after_rounds()
            if self._uses_broadcasts_only
            else self.view.broadcasts()
        )
        return tuple(number for number in with_updates if number in readable)

    def models(self) -> Iterator[Weights]:
        """Yield the model of each of these rounds."""
        if self._uses_broadcasts_only:
            ends = self._models_after_rounds()
            yield from (ends[number] for number in self.rounds())
            return
        starts = self.view.broadcasts()
        for number, update in self._updates():
            yield apply_update(starts[number], update.delta)

    def _updates(self) -> Iterator[tuple[int, Update]]:
        if self.target == COHORT:
            # Means of updates in clear text are computed on request. One round at a time keeps
            # only one in memory.
            for number in self.rounds():
                yield number, self.view.during((number,)).updates(COHORT)[number]
        else:
            updates = self.view.updates(self.target)
            yield from ((number, updates[number]) for number in self.rounds())

    @property
    def _uses_broadcasts_only(self) -> bool:
        return self.target == COHORT and not self.extract

    def _models_after_rounds(self) -> dict[int, Weights]:
        """Return the weights after each round, from the next round's broadcast."""
        return {
            message.round - 1: message.body.weights
            for message in (*self.view.messages, *self.view.closing_broadcasts)
            if isinstance(message.body, Broadcast)
        }
