"""Why the mean of the replies does not lead on: weights, medians, buffers, noise."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from overheard.consistency.evidence import ROUNDING, ClientReplies, Rounds, StepEvidence
from overheard.consistency.fits import (
    RATES,
    SHARE_OF_ROUNDS,
    SMALL_MEAN,
    Candidate,
    Tested,
    judge,
)
from overheard.consistency.proof import Fit, Reason, ServerStep
from overheard.consistency.readings import STATED, ReadingCase

KeptRounds = Sequence[tuple[int, ClientReplies, float]]
"""Single replies of the first rounds, with the relative distance of the broadcast's numbers."""

ONE_REPLY = 0.99
"""Least share of one reply in a step that takes this reply alone."""

FEWEST_NUMBERS = 128
"""Fewest numbers of a model whose shares and correlations mean anything."""

SHARE_ERROR = 0.01
"""Largest error of a fitted share of a reply in the mean."""

SHARE_BETWEEN = 0.99
"""Share of the numbers of a next broadcast that lie between the replies."""

LEAST_COSINE = 0.5
"""Smallest cosine of the change and the mean of the replies under such a step."""

LEAST_SLOPE = 0.3
"""Smallest factor of the mean in a change with noise; clipping may make it less than 1."""

LARGEST_ERROR = 0.1
"""Largest standard error of the factor of the mean that shows the mean in a change."""

SLOPE_TOLERANCE = 0.01
"""Relative error of the factor of the mean, beside its sampling error."""

STANDARD_ERRORS = 5.0
"""Largest distance from what is expected, in standard errors."""

MOST_EVEN = 0.1
"""Largest correlation of squared noise with squared updates, if the noise is even."""


def find_reason(kept: KeptRounds, rounds: Rounds, *, has_unseen: bool) -> Reason | None:
    """Return why the replies as stored do not lead on; None if no reason of the list is seen.

    Args:
        kept: single replies of the first rounds.
        rounds: the products of all rounds.
        has_unseen: whether there are replies that were not recorded; they look like noise.

    """
    weights = [_weights(one, STATED, rounding) for _, one, rounding in kept]
    if _is_usual(weights, lambda one: one is not None):
        if _is_usual(weights, lambda one: one is not None and _takes_one(one)):
            return Reason.NOT_A_MEAN
        found = [
            (one, factors)
            for (_, one, _), factors in zip(kept, weights, strict=True)
            if factors is not None
        ]
        if _is_usual(found, lambda pair: _are_known_shares(*pair)):
            return Reason.CHANGING_RATE
        return Reason.HIDDEN_COUNTS
    tests: tuple[tuple[Reason, Callable[[], bool]], ...] = (
        (
            Reason.NOT_A_MEAN,
            lambda: _is_usual(kept, lambda one: _fits_robust(one[1], STATED, one[2])),
        ),
        (Reason.ASYNCHRONOUS, lambda: _uses_several_rounds(kept)),
        (Reason.REPLIES_UNSEEN, lambda: has_unseen),
        (Reason.NOISE, lambda: has_noise(kept, rounds, STATED)),
        (Reason.NOT_A_MEAN, lambda: _is_usual(kept, lambda one: _stays_between(one[1]))),
    )
    return next((reason for reason, holds in tests if holds()), None)


def find_other_reading(
    kept: KeptRounds, rounds: Rounds, cases: Sequence[ReadingCase]
) -> Candidate | None:
    """Return the reading that follows with hidden weights, a median, or noise; None if none."""
    for case in cases:
        if case.part == "'":
            continue
        for fits in (_cone_test, _robust_test):
            tested = [fits(one, case, rounding, number) for number, one, rounding in kept]
            step = ServerStep("fed_avg", case.reading, case.base, case.saved)
            found = judge(case, step, [one for one in tested if one is not None])
            if found.follows:
                return found
    noisy = (one for one in cases if one.target == "c0" and not one.more and one.part != "'")
    for case in noisy:
        if has_noise(kept, rounds, case):
            step = ServerStep("fed_avg", case.reading)
            return Candidate(case, Fit(step, {}), follows=True)
    return None


Item = TypeVar("Item")


def _is_usual(items: Sequence[Item], has: Callable[[Item], bool]) -> bool:
    return bool(items) and sum(map(has, items)) >= SHARE_OF_ROUNDS * len(items)


def _vectors(
    one: ClientReplies, case: ReadingCase
) -> tuple[Float[Tensor, "clients numbers"], Float[Tensor, " numbers"]] | None:
    """Return the true differences of a reading, and the change that they lead to."""
    known: Mapping[str, Tensor] = {**one.changes, "b": one.broadcast}
    shift = dict(case.more)
    if case.part:
        shift["b"] = 1.0 if case.part == "+b" else -1.0
    if case.target not in known or any(name not in known for name in shift):
        return None
    added = sum((known[name] * factor for name, factor in shift.items()), torch.tensor(0.0))
    deltas = one.deltas.double()
    if case.target in shift:
        # A reply of nearly zeros would stand for the whole change that is to be explained.
        deltas = deltas[deltas.norm(dim=1) > SMALL_MEAN * known[case.target].norm()]
    return case.sign * (deltas + added), known[case.target]


def _cone_test(
    one: ClientReplies, case: ReadingCase, rounding: float, number: int
) -> Tested | None:
    """Test whether the change is a sum of the replies with factors of 0 or more."""
    found = _vectors(one, case)
    if found is None:
        return None
    solved = _solve_cone(*found)
    return None if solved is None else _tested(found[1], solved[1], one, rounding, number)


def _robust_test(
    one: ClientReplies, case: ReadingCase, rounding: float, number: int
) -> Tested | None:
    """Test whether the change is a median or trimmed mean of the replies, number by number.

    A sum that has the change itself is not tested: the median of sparse updates is zero.
    """
    found = _vectors(one, case)
    if found is None or len(found[0]) < 3 or case.target in case.more:
        return None
    differences, change = found
    ordered = differences.sort(0).values
    count = len(ordered)
    means = [ordered[cut : count - cut].mean(0) for cut in range(1, (count + 1) // 2)]
    means += [ordered[(count - 1) // 2], ordered[count // 2]]
    fit = [float((change - mean)[::2].square().sum()) for mean in means]
    best = means[int(np.argmin(fit))]
    return _tested(change, best, one, rounding, number)


def _tested(
    change: Tensor, predicted: Tensor, one: ClientReplies, rounding: float, number: int
) -> Tested:
    half = slice(1, None, 2)
    return Tested(
        number,
        float((change - predicted)[half].square().sum()),
        float(change[half].square().sum()),
        float((one.broadcast[half] * ROUNDING * rounding).square().sum()),
    )


def _solve_cone(
    vectors: Float[Tensor, "clients numbers"], change: Float[Tensor, " numbers"]
) -> tuple[list[float], Float[Tensor, " numbers"]] | None:
    """Return the factors of 0 or more, fitted on one half of the numbers, and their sum.

    None if there are as many vectors as numbers, so that any change would fit, or if the
    factors are no weights of a mean times a rate.
    """
    fit = vectors[:, ::2].numpy()
    if not 0 < len(fit) < fit.shape[1]:
        return None
    try:
        factors, _ = nnls(fit.T, change[::2].numpy())
    except RuntimeError:  # no convergence
        return None
    if not RATES[0] <= float(factors.sum()) <= RATES[1]:
        return None
    return [float(one) for one in factors], torch.from_numpy(factors) @ vectors


def _weights(one: ClientReplies, case: ReadingCase, rounding: float) -> list[float] | None:
    """Return the weights of the replies, if some lead to the change; otherwise None."""
    found = _vectors(one, case)
    solved = None if found is None else _solve_cone(*found)
    if found is None or solved is None:
        return None
    factors, total = solved
    tested = _tested(found[1], total, one, rounding, 0)
    return factors if tested.is_fine and tested.follows else None


def _takes_one(weights: Sequence[float]) -> bool:
    return len(weights) > 1 and max(weights) >= ONE_REPLY * sum(weights)


def _are_known_shares(one: ClientReplies, factors: Sequence[float]) -> bool:
    """Return whether factors are the shares of the mean, times any rate."""
    total, count = sum(factors), len(factors)
    return total > 0 and any(
        all(
            abs(factor / total - share) <= SHARE_ERROR
            for factor, share in zip(factors, shares, strict=True)
        )
        for shares in (one.shares, (1 / count,) * count)
    )


def _fits_robust(one: ClientReplies, case: ReadingCase, rounding: float) -> bool:
    tested = _robust_test(one, case, rounding, 0)
    return tested is not None and tested.is_fine and tested.follows


def _uses_several_rounds(kept: KeptRounds) -> bool:
    """Return whether each change is a sum of replies of this round and of rounds before."""
    tested = list[Tested]()
    for index, (number, one, rounding) in enumerate(kept):
        earlier = [other.deltas for _, other, _ in kept[: index + 1]]
        if any(deltas.shape[1] != one.deltas.shape[1] for deltas in earlier):
            continue
        solved = _solve_cone(torch.cat(earlier).double(), one.changes["c0"])
        if solved is not None:
            tested.append(_tested(one.changes["c0"], solved[1], one, rounding, number))
    return judge(STATED, ServerStep("fed_buff"), tested).follows and len(tested) > 1


def _stays_between(one: ClientReplies) -> bool:
    """Return whether the change lies between the replies, and goes their way."""
    deltas, change = one.deltas.double(), one.changes["c0"]
    if len(deltas) < 3 or len(change) < FEWEST_NUMBERS or not bool(change.any()):
        return False
    inside = (deltas.min(0).values <= change) & (change <= deltas.max(0).values)
    mean = deltas.mean(0)
    cosine = float(change @ mean / (change.norm() * mean.norm()))
    return float(inside.double().mean()) >= SHARE_BETWEEN and cosine >= LEAST_COSINE


def has_noise(kept: KeptRounds, rounds: Rounds, case: ReadingCase) -> bool:
    """Return whether each change is the mean and even noise that has to do with nothing else.

    The factor of the mean is fitted over all rounds. It must be clearly positive and at most 1.
    What is left may correlate neither with the broadcast nor with the change before, and must
    be as large where updates are small as where they are large.
    """
    known = [
        one
        for one in rounds
        if one.has(case.mean_difference("examples")) and 2 * one.count >= FEWEST_NUMBERS
    ]
    slope, error = _slope(known, case)
    if not error or slope < max(LEAST_SLOPE, STANDARD_ERRORS * error):
        return False
    if slope > 1 + STANDARD_ERRORS * error + SLOPE_TOLERANCE:
        return False
    mean = case.mean_difference("examples")
    left = {"c0": 1.0, **{name: -slope * factor for name, factor in mean.items()}}
    others = [{"b": 1.0}, {"c1": 1.0}]
    for other in others:
        scores = [_correlation(one, left, other) for one in known if one.has(other)]
        if scores and abs(float(np.mean(scores))) > STANDARD_ERRORS / len(scores) ** 0.5:
            return False
    return _is_usual(kept, lambda one: _is_even(one[1], case, slope))


def follows_with_rounding(rounds: Rounds) -> bool:
    """Return whether the stated step leaves no more of a change than coarse broadcasts allow.

    The mean must be in the change as a whole, and the error of its factor small.
    """
    known = [one for one in rounds if one.has({"examples": 1.0})]

    def fits(one: StepEvidence) -> bool:
        step = "predicted" if one.has({"predicted": 1.0}) else "examples"
        return one.square(one.test, {"c0": 1.0, step: -1.0}) <= one.rounding

    return _is_usual(known, fits) and _has_whole_mean(rounds)


def _has_whole_mean(rounds: Rounds) -> bool:
    """Return whether the factor of the mean in the changes is 1, within its standard error."""
    slope, error = _slope(rounds, STATED)
    is_one = bool(abs(slope - 1) <= STANDARD_ERRORS * error + SLOPE_TOLERANCE)
    return is_one and 0 < error <= LARGEST_ERROR


def _slope(rounds: Rounds, case: ReadingCase) -> tuple[float, float]:
    """Return the factor of the mean in the changes, with its standard error."""
    mean, change = case.mean_difference("examples"), {"c0": 1.0}
    product = square = variance = 0.0
    for one in rounds:
        weight = one.square(one.test, change)
        if weight:
            product += one.product(one.test, mean, change) / weight
            square += one.square(one.test, mean) / weight
    if not square:
        return 0.0, 0.0
    slope = product / square
    for one in rounds:
        weight = one.square(one.test, change)
        if weight:
            left = {"c0": 1.0, **{name: -slope * factor for name, factor in mean.items()}}
            spread = one.square(one.test, left) / max(1, one.count)
            variance += spread * one.square(one.test, mean) / weight**2
    return slope, variance**0.5 / square


def _correlation(
    one: StepEvidence, left: Mapping[str, float], other: Mapping[str, float]
) -> float:
    """Return the correlation of two sums in a round, in standard errors."""
    size = (one.square(one.test, left) * one.square(one.test, other)) ** 0.5
    return one.product(one.test, left, other) / size * one.count**0.5 if size else 0.0


def _is_even(one: ClientReplies, case: ReadingCase, slope: float) -> bool:
    found = _vectors(one, case)
    if found is None:
        return False
    differences, change = found
    shares = torch.tensor(one.shares, dtype=torch.float64)
    mean = shares @ differences
    noise = (change - slope * mean).square()
    square = mean.square()
    spread = float(noise.std() * square.std())
    if not spread or not len(noise) > 2:
        return False
    covariance = float(((noise - noise.mean()) * (square - square.mean())).mean())
    return bool(abs(covariance / spread) <= MOST_EVEN + STANDARD_ERRORS / len(noise) ** 0.5)
