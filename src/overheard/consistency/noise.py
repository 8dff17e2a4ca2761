"""Which reading leaves noise of the size that a server states, as its likelihood tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from scipy.stats import chi2

from overheard.consistency.evidence import Rounds, StepEvidence, Sum, add_sums
from overheard.consistency.fits import SHARE_OF_ROUNDS, Candidate
from overheard.consistency.proof import Fit, ServerStep
from overheard.consistency.readings import OTHER_READINGS, STATED, ReadingCase

FALSE_ALARMS = 1e-5
"""Share of true readings whose noise would be found too small or too large by chance."""

NOISE_TOLERANCE = 0.01
"""Relative error of the square of a stated size of noise, beside its sampling error."""

CLEARLY_LIKELIER = 25.0
"""By how much the squares of the noise, in its variances, are smaller under a reading that is
clearly likelier: their difference is twice the logarithm of the ratio of the likelihoods."""


@final
@dataclass(frozen=True, slots=True)
class _Left:
    """What a reading leaves of the changes of some rounds.

    Args:
        square: the sum of its squares, each in variances of the stated noise.
        count: how many numbers were added.

    """

    square: float
    count: int

    @property
    def is_noise(self) -> bool:
        """Whether it is as large as the noise, within the sampling error."""
        low = float(chi2.ppf(FALSE_ALARMS / 2, self.count))
        high = float(chi2.isf(FALSE_ALARMS / 2, self.count))
        error = NOISE_TOLERANCE * self.count
        return bool(low - error <= self.square <= high + error)


@final
@dataclass(frozen=True, slots=True)
class ReadingWithNoise:
    """The likeliest reading that leaves noise of the stated size.

    Args:
        candidate: the reading.
        is_hidden: whether the noise hides it: another reading, or replies that have nothing to
            do with the changes of the model, would leave such noise about as likely.

    """

    candidate: Candidate
    is_hidden: bool


def find_reading_with_noise(rounds: Rounds, noise: float) -> ReadingWithNoise | None:
    """Return the likeliest reading that leaves noise of the stated size; None if none does.

    Nothing is fitted, so all numbers count. The reading as stored is taken unless another one
    is clearly likelier.

    Args:
        rounds: the products of all rounds.
        noise: standard deviation of the noise in the sum of the replies; it is divided by
            their number in the mean.

    """
    if not noise:
        return None
    lefts = [
        (case, [_weigh(each, _left_by(case), noise) for each in rounds])
        for case in (STATED, *OTHER_READINGS)
        if case.sign > 0  # the size of a gradient's step is not known
    ]
    found = [(case, left) for case, left in lefts if _leaves_noise(left)]
    if not found:
        return None
    best = found[0]
    for one in found[1:]:
        if _advantage(one[1], best[1]) > CLEARLY_LIKELIER:
            best = one
    still = [_weigh(each, {best[0].target: 1.0}, noise) for each in rounds]
    rivals = [still, *(left for case, left in found if case is not best[0])]
    is_hidden = any(_advantage(best[1], one) <= CLEARLY_LIKELIER for one in rivals)
    case = best[0]
    step = ServerStep("fed_avg", case.reading, case.base, case.saved, "equal")
    return ReadingWithNoise(Candidate(case, Fit(step, {}), follows=True), is_hidden)


def _leaves_noise(left: Sequence[_Left | None]) -> bool:
    """Return whether nine of ten rounds leave noise of the stated size, and these together."""
    known = [one for one in left if one is not None]
    fits = [one for one in known if one.is_noise]
    total = _Left(sum(one.square for one in fits), sum(one.count for one in fits))
    return bool(fits) and len(fits) >= SHARE_OF_ROUNDS * len(known) and total.is_noise


def _advantage(one: Sequence[_Left | None], other: Sequence[_Left | None]) -> float:
    """Return by how much less one reading leaves than the other, in the rounds of both."""
    pairs = zip(one, other, strict=True)
    return sum(right.square - left.square for left, right in pairs if left and right)


def _left_by(case: ReadingCase) -> Sum:
    """Return what a reading leaves of a change."""
    return add_sums(({case.target: 1.0}, 1.0), (case.mean_difference("equal"), -1.0))


def _weigh(one: StepEvidence, left: Sum, noise: float) -> _Left | None:
    """Return the size of what is left in a round; None if it cannot be tested."""
    if not one.has(left):
        return None
    square = one.square(one.fit, left) + one.square(one.test, left)
    return _Left(square / (noise / one.replies) ** 2, one.fit_count + one.count)
