"""How far each value of a series lies off the line through those before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import linear_regression
from typing import final

from overheard.core.claims import Timeline
from overheard.core.errors import NeedsError
from overheard.questions.shift.claim import Shift

ROUNDING = 2.0**-23
"""Of float32, in which weights are sent: relative to its size no value is known better."""


@final
@dataclass(frozen=True, slots=True)
class Trend:
    """Compares a value with what the rounds just before it let expect.

    Brunner and Montuoro 2024, section 5.3: the line through the values of the e rounds before
    round t, fitted by least squares, is drawn on to t; the divergence is |observed - expected|.
    The paper does not say e.

    A line through e points drawn on by one round is off by s (1 + 1/e + (t - m)^2 / S)^(1/2)
    where values scatter around it with s, m being the mean of those rounds and S their sum of
    squares around it: 1.45 s at e = 5, so the divergence as published is mostly noise, and
    divergences of two metrics stand on two scales. Standardised, it is divided by that, with s
    from the e - 2 degrees of freedom that the line leaves.

    Args:
        rounds: e, those that the line is fitted to.
        standardise: whether divergences are divided by their standard error.

    """

    rounds: int = 5
    standardise: bool = False

    def __post_init__(self) -> None:
        """Refuse a line that nothing determines."""
        least = 3 if self.standardise else 2
        if self.rounds < least:
            kind = "standardised trend" if self.standardise else "trend"
            raise ValueError(f"a {kind} is fitted to {least} rounds or more, got {self.rounds}")

    def divergences(self, series: Mapping[int, float]) -> dict[int, float]:
        """The divergence at each round before which there are enough, none missing.

        Args:
            series: the values by round, all finite.

        """
        told = {}
        for number in sorted(series):
            window = range(number - self.rounds, number)
            if all(before in series for before in window):
                told[number] = self._divergence([series[n] for n in window], series[number])
        return told

    def shift(
        self, series: Mapping[int, float], heard: Sequence[int], lag: int, teller: str
    ) -> Shift:
        """Claim a shift since the round of the largest divergence, without any alarm.

        Args:
            series: the values by round.
            heard: the rounds whose models were read, in order.
            lag: how many models a value takes besides its own round's.
            teller: the attack and its target, for the refusal.

        Raises:
            NeedsError: if there is no divergence at all, saying what there are too few of.

        """
        divergences = self.divergences(series)
        if not divergences:
            raise NeedsError(f"{teller} {self._lack(series, heard, lag)}")
        return Shift(
            Timeline(
                rounds=tuple(divergences),
                statistic=tuple(divergences.values()),
                since=max(divergences, key=divergences.__getitem__),
            )
        )

    def _divergence(self, before: list[float], observed: float) -> float:
        # Rounds are counted from the one in question, so that the line meets it at 0.
        places = range(-len(before), 0)
        slope, expected = linear_regression(places, before)
        divergence = abs(observed - expected)
        if not self.standardise or divergence == 0:
            return divergence
        residuals = [y - expected - slope * x for x, y in zip(places, before, strict=True)]
        scatter = sqrt(sum(r * r for r in residuals) / (len(before) - 2))
        # A series that lies on its line but for rounding would else be infinitely far off it.
        scatter = max(scatter, ROUNDING * max(map(abs, (*before, observed))))
        mean = sum(places) / len(places)
        spread = sum((x - mean) ** 2 for x in places)
        return divergence / (scatter * sqrt(1 + 1 / len(before) + mean**2 / spread))

    def _lack(self, series: Mapping[int, float], heard: Sequence[int], lag: int) -> str:
        """Why there is no divergence."""
        needed, longest = lag + self.rounds + 1, _longest(heard)
        told = (
            f"needs {needed} rounds on end, as its trend is fitted to {self.rounds}, and reads "
            f"{len(heard)} rounds, {longest} on end at most: choose a shorter trend"
        )
        if longest < needed:
            return told
        lost = [
            number
            for number in heard
            if all(before in heard for before in range(number - lag, number))
            and not isfinite(series.get(number, float("nan")))
        ]
        return f"{told}; weights are no finite numbers around rounds {_listed(lost)}"


def _longest(rounds: Sequence[int]) -> int:
    """The length of the longest row of rounds that follow on one another."""
    longest = length = 0
    for place, number in enumerate(rounds):
        length = length + 1 if place and rounds[place - 1] == number - 1 else 1
        longest = max(longest, length)
    return longest


def _listed(rounds: Sequence[int]) -> str:
    return ", ".join(map(str, rounds))
