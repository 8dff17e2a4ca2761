"""The models at which a target arrived, round by round."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from overheard.core.messages import Broadcast, Update, Weights, moved
from overheard.core.parties import COHORT, Party
from overheard.core.view import View


@final
@dataclass(frozen=True, slots=True)
class ModelsHeard:
    """What a target had learned by the end of each round, as far as it can be read.

    The model of round t was trained on the data of round t: it is the broadcast of round t and
    the update that answered it. For `COHORT` that is the size-weighted mean of the models of
    all clients but the observers, as `View.updates` takes the observers' own influence out; of
    a federation of two it is the other client's very model.

    Args:
        view: what is read.
        target: who is followed.
        extract: False = `COHORT` is followed by the broadcasts as they are, that of round t + 1
            for round t, with the observers' own influence in them. Where a client's own
            updates are read there is nothing to extract, and this changes nothing.

    """

    view: View
    target: Party
    extract: bool = True

    def rounds(self) -> tuple[int, ...]:
        """The rounds whose model can be read, in order; reads no weight."""
        heard = self.view.heard(self.target)
        there = self._ends() if self._plain else self.view.broadcasts()
        return tuple(number for number in heard if number in there)

    def models(self) -> Iterator[Weights]:
        """The model of each of these rounds, one at a time."""
        if self._plain:
            ends = self._ends()
            yield from (ends[number] for number in self.rounds())
            return
        starts = self.view.broadcasts()
        for number, update in self._updates():
            yield moved(starts[number], update.delta)

    def _updates(self) -> Iterator[tuple[int, Update]]:
        if self.target == COHORT:
            # Means of updates in the clear are computed as they are asked for: a round at a
            # time keeps one in memory.
            for number in self.rounds():
                yield number, self.view.during((number,)).updates(COHORT)[number]
        else:
            updates = self.view.updates(self.target)
            yield from ((number, updates[number]) for number in self.rounds())

    @property
    def _plain(self) -> bool:
        return self.target == COHORT and not self.extract

    def _ends(self) -> dict[int, Weights]:
        """The weights that each round came to, as the next one's broadcast tells."""
        return {
            message.round - 1: message.body.weights
            for message in (*self.view.messages, *self.view.closings)
            if isinstance(message.body, Broadcast)
        }
