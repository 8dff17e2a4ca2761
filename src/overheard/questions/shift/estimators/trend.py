"""Divergence of each value of a series from the line through the values before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import linear_regression
from typing import final

from overheard.core.claims import Timeline
from overheard.core.errors import NeedsError
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.round_scale import RoundScale

FLOAT32_PRECISION = 2.0**-23
"""Relative precision of float32, in which weights are sent."""


@final
@dataclass(frozen=True, slots=True)
class Trend:
    """Compares a value with the extrapolation of the rounds before it.

    Brunner and Montuoro 2024, section 5.3: a line is fitted by least squares to the values of
    the e rounds before round t and extrapolated to t. The divergence is |observed - expected|.
    The paper does not state e.

    If values scatter around the line with standard deviation s, the extrapolation has standard
    error s (1 + 1/e + (t - m)^2 / S)^(1/2); m is the mean of those rounds and S their sum of
    squares around it. This is 1.45 s at e = 5, so the published divergence is mostly noise, and
    divergences of two metrics have different scales. If standardised, the divergence is divided
    by the standard error, with s from the e - 2 residual degrees of freedom.

    Args:
        rounds: e, the number of rounds that the line is fitted to.
        standardise: whether divergences are divided by their standard error.

    """

    rounds: int = 5
    standardise: bool = False

    def __post_init__(self) -> None:
        """Refuse too few rounds for a line."""
        if self.rounds < self._least:
            kind = "standardised trend" if self.standardise else "trend"
            raise ValueError(f"a {kind} needs {self._least} or more rounds, got {self.rounds}")

    @property
    def _least(self) -> int:
        """The fewest rounds of a line, with a round more to see scatter around it."""
        return 3 if self.standardise else 2

    def divergences(self, series: Mapping[int, float]) -> dict[int, float]:
        """Return the divergence at each round that follows enough consecutive rounds.

        Args:
            series: the values by round, all finite.

        """
        by_round = {}
        for number in sorted(series):
            window = range(number - self.rounds, number)
            if all(before in series for before in window):
                by_round[number] = self._divergence(
                    [series[before] for before in window], series[number]
                )
        return by_round

    def claim_shift(
        self,
        series: Mapping[int, float],
        observed: Sequence[int],
        lag: int,
        teller: str,
        scale: RoundScale | None = None,
    ) -> Shift:
        """Claim a shift since the round of the largest divergence, without any alarm.

        Args:
            series: the values by round.
            observed: the rounds whose models were read, in order.
            lag: how many models of earlier rounds a value needs.
            teller: the attack and its target, for the error message.
            scale: the scale of the divergence by round; None = it is not standardised.

        Raises:
            NeedsError: if there is no divergence; the message states what is missing.

        """
        divergences = self.divergences(series)
        if scale is not None:
            divergences = scale.standardise(divergences)
        if not divergences:
            raise NeedsError(f"{teller} {self._explain_too_few(series, observed, lag)}")
        return Shift(
            Timeline(
                rounds=tuple(divergences),
                statistic=tuple(divergences.values()),
                since=max(divergences, key=divergences.__getitem__),
            )
        )

    def _divergence(self, before: list[float], observed: float) -> float:
        # Rounds are counted relative to the current one, so the line is evaluated at 0.
        places = range(-len(before), 0)
        slope, expected = linear_regression(places, before)
        divergence = abs(observed - expected)
        if not self.standardise or divergence == 0:
            return divergence
        residuals = [y - expected - slope * x for x, y in zip(places, before, strict=True)]
        scatter = sqrt(sum(r * r for r in residuals) / (len(before) - 2))
        # Without a lower bound, a series on its line up to rounding would diverge infinitely.
        scatter = max(scatter, FLOAT32_PRECISION * max(map(abs, (*before, observed))))
        mean = sum(places) / len(places)
        spread = sum((x - mean) ** 2 for x in places)
        return divergence / (scatter * sqrt(1 + 1 / len(before) + mean**2 / spread))

    def _explain_too_few(
        self, series: Mapping[int, float], observed: Sequence[int], lag: int
    ) -> str:
        """Explain why there is no divergence."""
        needed, longest = lag + self.rounds + 1, _longest_streak(observed)
        shorter = ", or lower `trend` of this attack in the plan"
        explanation = (
            f"needs {needed} consecutive rounds, {self.rounds} of them to learn how the model "
            f"changes without a shift, and reads {len(observed)} rounds, at most {longest} "
            f"consecutive: record more rounds{shorter if self.rounds > self._least else ''}"
        )
        if longest < needed:
            return explanation
        lost = [
            number
            for number in observed
            if all(before in observed for before in range(number - lag, number))
            and not isfinite(series.get(number, float("nan")))
        ]
        return f"{explanation}; weights are not finite around rounds {_listed(lost)}"


def _longest_streak(rounds: Sequence[int]) -> int:
    """Return the length of the longest sequence of consecutive rounds."""
    longest = length = 0
    for place, number in enumerate(rounds):
        length = length + 1 if place and rounds[place - 1] == number - 1 else 1
        longest = max(longest, length)
    return longest


def _listed(rounds: Sequence[int]) -> str:
    return ", ".join(map(str, rounds))
