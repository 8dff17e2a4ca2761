"""When each attack is repeated while a recording is followed, by how long it takes."""

from collections import deque
from collections.abc import Iterable
from math import ceil
from typing import final

from overheard.core.parties import Party

AttackKey = tuple[tuple[Party, ...], str]
"""The observers and the full name of an attack."""

REMEMBERED_ROUNDS = 10
"""Rounds from which the time between two rounds is estimated."""

SHARE_OF_TIME = 0.5
"""Most of the time that an attack which takes longer than a round may use."""


@final
class Pace:
    """Decides which attacks are repeated at a new round.

    Attacks that together fit into the time of a round are repeated at each round. Of the
    others, one at a time is repeated, and each uses at most half of the time. Otherwise they
    would delay the quick ones at every round.
    """

    def __init__(self) -> None:
        self._arrivals = deque[tuple[int, float]](maxlen=REMEMBERED_ROUNDS)
        self._seconds = dict[AttackKey, float]()
        self._last_round = dict[AttackKey, int]()

    def note_round(self, rounds: int, now: float) -> None:
        """Note that the run has this many rounds now, by a clock in seconds."""
        self._arrivals.append((rounds, now))

    def note_attack(self, attack: AttackKey, rounds: int, seconds: float) -> None:
        """Note how long an attack took when the run had this many rounds."""
        self._seconds[attack] = seconds
        self._last_round[attack] = rounds

    @property
    def seconds_per_round(self) -> float | None:
        """The mean time between two rounds; None = not known yet."""
        if len(self._arrivals) < 2:
            return None
        (first, begin), (last, end) = self._arrivals[0], self._arrivals[-1]
        return (end - begin) / max(1, last - first)

    def rounds_between(self, attack: AttackKey) -> int:
        """Return at every how many rounds an attack is repeated; 1 = at each round."""
        return self._plan().get(attack, 1)

    def quick(self, attacks: Iterable[AttackKey]) -> tuple[AttackKey, ...]:
        """Return the attacks that are repeated at each round, the quickest first."""
        plan = self._plan()
        chosen = [one for one in attacks if plan.get(one, 1) == 1]
        return tuple(sorted(chosen, key=lambda one: self._seconds.get(one, 0.0)))

    def slow(self, attacks: Iterable[AttackKey], rounds: int) -> AttackKey | None:
        """Return the slow attack to repeat now that the run has this many rounds, if any."""
        plan = self._plan()
        waited = {
            one: rounds - self._last_round[one] for one in attacks if plan.get(one, 1) > 1
        }
        ready = [one for one, count in waited.items() if count >= plan[one]]
        return max(ready, key=lambda one: waited[one], default=None)

    def _plan(self) -> dict[AttackKey, int]:
        """Return at every how many rounds each attack that was timed is repeated."""
        between, plan, used = self.seconds_per_round, dict[AttackKey, int](), 0.0
        for attack, seconds in sorted(self._seconds.items(), key=lambda item: item[1]):
            used += seconds
            if between is None or used <= between:
                plan[attack] = 1
            else:
                plan[attack] = max(2, ceil(seconds / (SHARE_OF_TIME * max(between, 1e-9))))
        return plan
