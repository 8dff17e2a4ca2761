"""How well server steps lead to the next broadcasts, under each reading of the replies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeVar, final

import numpy as np

from overheard.consistency import adaptive
from overheard.consistency.adaptive import CHANGED, AdaptiveEvidence, Track
from overheard.consistency.evidence import (
    CHANGES,
    Rounds,
    StepEvidence,
    Sum,
    add_sums,
    least_squares,
    relative,
)
from overheard.consistency.proof import Fit, ServerStep
from overheard.consistency.readings import OTHER_READINGS, STATED, MixedCase, ReadingCase
from overheard.core.algorithm.algorithm import Algorithm, MeanKind
from overheard.core.parties import Party

LARGEST_RESIDUAL = 1e-3
"""Largest relative residual of a round that follows."""

SHARE_OF_ROUNDS = 0.9
"""Share of the rounds that can be tested in which a step must follow."""

COARSE = 0.2
"""Largest error of rounding, relative to the change, of a round that can be tested."""

NUMBERS_PER_FACTOR = 2
"""Fewest numbers, over all rounds, for each factor that is fitted on them."""

LEAST_GAP = 0.3
"""Smallest gap between the factors of a vector in two groups of replies that are apart."""

MEAN_KINDS = ("examples", "equal")

Rate = tuple[float, float]
"""The smallest and the largest value of a number that is fitted."""

SMALL_MEAN = 0.01
"""Largest mean of replies, relative to the change of the model, that may be zero."""

LEAST_TAU = -1e-6
"""Smallest tau of an adaptive server; below 0 only by rounding."""

RATES: Rate = (1e-6, 1e6)
MOMENTA: Rate = (1e-2, 0.9999)


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A step that was held against the rounds.

    Args:
        case: the reading.
        fit: the step and its residuals.
        follows: whether it leads to the next broadcasts.

    """

    case: ReadingCase
    fit: Fit
    follows: bool

    @property
    def residual(self) -> float:
        """The median of its residuals; infinite if no round can be tested."""
        residuals = list(self.fit.residuals.values())
        return float(np.median(residuals)) if residuals else float("inf")


@final
@dataclass(frozen=True, slots=True)
class Tested:
    """One round as a step is held against it.

    Args:
        round: its number.
        residual: the square of the change that is not explained, on the half for tests.
        target: the square of the change.
        rounding: the square of the error that rounded broadcasts allow.

    """

    round: int
    residual: float
    target: float
    rounding: float

    @property
    def is_fine(self) -> bool:
        """Whether the broadcast is finer than the change, so that the round can be tested."""
        return self.target > 0 and self.rounding <= COARSE**2 * self.target

    @property
    def follows(self) -> bool:
        """Whether the step leads to the change, but for rounding."""
        return self.residual <= LARGEST_RESIDUAL**2 * self.target + self.rounding


def judge(case: ReadingCase, step: ServerStep, rounds: Sequence[Tested]) -> Candidate:
    """Return a candidate with its residuals, and whether it follows."""
    fine = [one for one in rounds if one.is_fine]
    passed = sum(one.follows for one in fine)
    residuals = {one.round: relative(one.residual, one.target) for one in fine}
    follows = bool(fine) and passed >= SHARE_OF_ROUNDS * len(fine)
    return Candidate(case, Fit(step, residuals), follows)


def fit_stated(rounds: Rounds, algorithm: Algorithm | None) -> Candidate:
    """Return how well the stated step leads on; FedAvg if no step is stated or known."""
    is_known = any(one.has({"predicted": 1.0}) for one in rounds)
    name = "predicted" if is_known else "examples"
    left = {"c0": 1.0, name: -1.0}
    tested = _test_all(rounds, left, STATED, name)
    step = ServerStep(algorithm.name if algorithm is not None and is_known else "fed_avg")
    return judge(STATED, step, tested)


def are_still(rounds: Rounds) -> bool:
    """Return whether the model never changes."""
    return not any(
        one.square(half, {"c0": 1.0}) for one in rounds for half in (one.fit, one.test)
    )


def are_too_coarse(rounds: Rounds) -> bool:
    """Return whether all broadcasts are rounded more coarsely than the model changes."""
    tested = [_test(one, {"c0": 1.0}, "c0") for one in rounds]
    return not are_still(rounds) and not any(one.is_fine for one in tested)


def fit_same_reading(rounds: Rounds, tracks: Sequence[AdaptiveEvidence]) -> Iterator[Candidate]:
    """Yield other server steps with the replies as they are stored, the plainest first."""
    yield from fit_steps(STATED, rounds)
    yield from fit_adaptive(tracks, STATED)


def fit_other_readings(
    rounds: Rounds, tracks: Sequence[AdaptiveEvidence]
) -> Iterator[Candidate]:
    """Yield all steps with other readings, the plainest first."""
    plain, fitted = list[Candidate](), list[Candidate]()
    for case in OTHER_READINGS:
        candidates = list(fit_steps(case, rounds))
        plain += [one for one in candidates if not one.fit.step.fitted]
        fitted += [one for one in candidates if one.fit.step.fitted]
    yield from plain
    yield from fitted
    for case in OTHER_READINGS:
        yield from fit_adaptive(tracks, case)


def fit_steps(case: ReadingCase, rounds: Rounds) -> Iterator[Candidate]:
    """Yield the mean, the mean times a rate, and this with momentum, under one reading."""
    for fit in (_fit_fixed, _fit_rate, _fit_momentum):
        for mean in MEAN_KINDS:
            candidate = fit(case, mean, rounds)
            if candidate is not None:
                yield candidate


def _fit_fixed(case: ReadingCase, mean: str, rounds: Rounds) -> Candidate | None:
    # The size of a gradient's step is never known.
    if case.sign < 0:
        return None
    left = add_sums(({case.target: 1.0}, 1.0), (case.mean_difference(mean), -1.0))
    tested = _test_all(rounds, left, case, mean)
    return judge(case, _step(case, mean, "fed_avg", {}), tested)


def _fit_rate(case: ReadingCase, mean: str, rounds: Rounds) -> Candidate | None:
    difference = case.mean_difference(mean)
    rate, *_ = _solve(case, (difference,), rounds) or (0.0,)
    if not RATES[0] <= rate <= RATES[1]:
        return None
    left = add_sums(({case.target: 1.0}, 1.0), (difference, -rate))
    tested = _test_all(rounds, left, case, mean)
    return judge(case, _step(case, mean, "fed_avg", {"rate": rate}), tested)


def _fit_momentum(case: ReadingCase, mean: str, rounds: Rounds) -> Candidate | None:
    difference, before = case.mean_difference(mean), {case.change_before: 1.0}
    if case.target != "c0":
        # The first stored model is then that after a round, of which the change is unknown.
        rounds = [one for one in rounds if one.round >= CHANGES.index(case.change_before)]
    solved = _solve(case, (difference, before), rounds)
    if solved is None:
        return None
    rate, momentum = solved
    if not RATES[0] <= rate <= RATES[1] or not MOMENTA[0] <= momentum <= MOMENTA[1]:
        return None
    left = add_sums(({case.target: 1.0}, 1.0), (difference, -rate), (before, -momentum))
    tested = _test_all(rounds, left, case, mean)
    fitted = {"rate": rate, "momentum": momentum}
    return judge(case, _step(case, mean, "fed_avg_m", fitted), tested)


def fit_adaptive(rounds: Sequence[AdaptiveEvidence], case: ReadingCase) -> Iterator[Candidate]:
    """Yield the steps of adaptive servers under one reading, with a fitted rate."""
    tracks = list(dict.fromkeys(track for one in rounds for track in one.fit))
    for track in tracks:
        sign = _sign_of(track, case)
        if sign and any(_is_moving(one, track) for one in rounds if track in one.fit):
            yield _fit_track(track, case, sign, rounds)


def _sign_of(track: Track, case: ReadingCase) -> int:
    """Return the direction in which a track is the step of a reading; 0 if it is not."""
    same = (track.case.part, track.case.more, track.case.target)
    return case.sign if same == (case.part, case.more, case.target) else 0


def _fit_track(
    track: Track, case: ReadingCase, sign: int, rounds: Sequence[AdaptiveEvidence]
) -> Candidate:
    known = [one for one in rounds if track in one.fit and _is_moving(one, track)]
    rate, tau = _trimmed(
        known,
        lambda chosen: adaptive.pooled_step([one.fit[track] for one in chosen]),
        lambda one, step: relative(*adaptive.weigh_residual(one.fit[track], *step)),
    )
    step = _step(case, track.mean, track.algorithm.name, {"rate": sign * rate, "tau": tau})
    if sign * rate <= 0 or tau < LEAST_TAU:
        return Candidate(case, Fit(step, {}), follows=False)
    tested = list[Tested]()
    for one in known:
        residual, target = adaptive.weigh_residual(one.test[track], rate, tau)
        rounding = one.rounding / one.test[track][CHANGED, CHANGED]
        tested.append(Tested(one.round, residual, target, rounding * target))
    return judge(case, step, tested)


def _is_moving(one: AdaptiveEvidence, track: Track) -> bool:
    """Return whether the model changes on both halves of the numbers, by finite steps.

    Steps are not finite if a recording states absurd settings.
    """
    return all(
        half[track][CHANGED, CHANGED] > 0 and bool(np.isfinite(half[track]).all())
        for half in (one.fit, one.test)
    )


Item = TypeVar("Item")
Value = TypeVar("Value")


def _trimmed(
    items: Sequence[Item],
    solve: Callable[[Sequence[Item]], Value],
    residual: Callable[[Item, Value], float],
) -> Value:
    """Fit on all rounds, then again without the tenth that fits worst."""
    first = solve(items)
    kept = sorted(items, key=lambda one: residual(one, first))
    return solve(kept[: ceil(SHARE_OF_ROUNDS * len(items))])


def _solve(
    case: ReadingCase, regressors: Sequence[Sum], rounds: Rounds
) -> tuple[float, ...] | None:
    """Return the factors that fit the changes of all rounds best, each counting alike."""
    target: Sum = {case.target: 1.0}
    known = [
        one
        for one in rounds
        if all(one.has(total) for total in (target, *regressors))
        and one.square(one.fit, target) > 0
    ]
    if sum(one.count for one in known) < NUMBERS_PER_FACTOR * len(regressors):
        return None

    def solve(chosen: Rounds) -> tuple[float, ...]:
        size = len(regressors)
        matrix, right = np.zeros((size, size)), np.zeros(size)
        for one in chosen:
            weight = 1 / one.square(one.fit, target)
            for row, left in enumerate(regressors):
                right[row] += weight * one.product(one.fit, left, target)
                for column, other in enumerate(regressors):
                    matrix[row, column] += weight * one.product(one.fit, left, other)
        return tuple(float(one) for one in least_squares(matrix, right))

    def residual(one: StepEvidence, factors: tuple[float, ...]) -> float:
        parts = ((one, -factor) for one, factor in zip(regressors, factors, strict=True))
        left = add_sums((target, 1.0), *parts)
        return one.square(one.fit, left) / one.square(one.fit, target)

    return _trimmed(known, solve, residual)


def fit_mixed(case: MixedCase, rounds: Rounds) -> tuple[Candidate, dict[int, int]] | None:
    """Return how well the mean leads on if some replies are read otherwise, and how many.

    In each round, these replies are those that contain minus the missing vector most. Their
    number is that which fits best on one half of the numbers; it is tested on the other.

    Returns:
        The candidate that follows, and by round the number of these replies; None if none
        follows, or all replies are alike.

    """
    for mean in MEAN_KINDS:
        for rate in dict.fromkeys((1.0, _mixed_rate(case, mean, rounds))):
            numbers, tested = dict[int, int](), list[Tested]()
            for one in rounds:
                shares = (0.0, *_cumulated_shares(one, case, mean))
                sums = [_mixed_sum(case, mean, rate, rate * share) for share in shares]
                number = int(np.argmin([one.square(one.fit, total) for total in sums]))
                numbers[one.round] = number
                tested.append(_test(one, sums[number], "c0"))
            reading = ReadingCase(case.words, case.mend, case.reading, base=case.base)
            fitted = {} if rate == 1 else {"rate": rate}
            found = judge(reading, _step(reading, mean, "fed_avg", fitted), tested)
            if found.follows and any(numbers.values()):
                return found, numbers
    return None


def _mixed_rate(case: MixedCase, mean: str, rounds: Rounds) -> float:
    """Return the factor of the mean if the missing vector has a factor of its own a round."""
    rates = list[float]()
    for one in rounds:
        left, vector = _mixed_sum(case, mean, 1.0, 0.0), _mixed_sum(case, mean, 0.0, 1.0)
        if not one.has({**left, **vector}):
            continue
        change: Sum = {"c0": 1.0}
        parts = [add_sums((change, 1.0), (left, -1.0)), add_sums((change, 1.0), (vector, -1.0))]
        matrix = np.array([[one.product(one.fit, x, y) for y in parts] for x in parts])
        right = np.array([one.product(one.fit, x, change) for x in parts])
        rates.append(float(least_squares(matrix, right)[0]))
    rate = float(np.median(rates)) if rates else 1.0
    return rate if RATES[0] <= rate <= RATES[1] else 1.0


def mixed_senders(case: MixedCase, one: StepEvidence, number: int) -> tuple[Party, ...]:
    """Return the senders of so many replies that contain minus the missing vector most."""
    alignment = one.alignments.get(case.vector.removeprefix("-"))
    if alignment is None:
        return ()
    ordered = alignment.senders[::-1] if case.vector.startswith("-") else alignment.senders
    return ordered[:number]


def are_apart(case: MixedCase, rounds: Rounds, numbers: Mapping[int, int]) -> bool:
    """Return whether the replies that are read otherwise are clearly apart from the others.

    A reply that began elsewhere contains minus the missing vector once; so the factors of the
    vector in both groups differ by about 1.
    """
    gaps = list[float]()
    for one in rounds:
        alignment, number = one.alignments.get(case.vector), numbers[one.round]
        if alignment is not None and 0 < number < len(alignment.slopes):
            gaps.append(alignment.slopes[number] - alignment.slopes[number - 1])
    return bool(gaps) and float(np.median(gaps)) >= LEAST_GAP


def _cumulated_shares(one: StepEvidence, case: MixedCase, mean: str) -> list[float]:
    alignment = one.alignments.get(case.vector.removeprefix("-"))
    if alignment is None or not one.has(_mixed_sum(case, mean, 1.0, 1.0)):
        return []
    shares = alignment.shares[::-1] if case.vector.startswith("-") else alignment.shares
    if mean == "equal":
        shares = (1 / len(shares),) * len(shares)
    return [float(total) for total in np.cumsum(shares)]


def _mixed_sum(case: MixedCase, mean: str, rate: float, share: float) -> dict[str, float]:
    """Return the change less a rate times the mean, and less a share of the missing vector."""
    change: Sum = {"c0": 1.0}
    if case.vector in {"b", "-b"}:
        whole = f"{mean}+b" if case.vector == "b" else f"{mean}-b"
        return add_sums((change, 1.0), ({mean: rate - share, whole: share}, -1.0))
    missing = {f"c{back}": 1.0 for back in range(1, case.base + 1)}
    return add_sums((change, 1.0), ({mean: rate}, -1.0), (missing, -share))


def _test_all(rounds: Rounds, left: Sum, case: ReadingCase, mean: str) -> list[Tested]:
    """Test those rounds of which all vectors are known.

    If models were saved after the aggregation, the replies of a round deviate from their mean,
    so that they cancel each other out. Replies that are just small do not prove it.
    """
    tested = list[Tested]()
    for one in rounds:
        if not (one.has(left) and one.has({case.target: 1.0})):
            continue
        found, name = _test(one, left, case.target), f"{mean}{case.part}"
        is_small = one.square(one.test, {name: 1.0}) <= SMALL_MEAN**2 * found.target
        if case.target in case.more and is_small and name not in one.cancelling:
            found = replace(found, residual=found.target)
        tested.append(found)
    return tested


def _test(one: StepEvidence, left: Sum, target: str) -> Tested:
    return Tested(
        one.round,
        one.square(one.test, left),
        one.square(one.test, {target: 1.0}),
        one.rounding,
    )


def _step(
    case: ReadingCase, mean: str, algorithm: str, fitted: Mapping[str, float]
) -> ServerStep:
    kind: MeanKind = "equal" if mean == "equal" else "examples"
    return ServerStep(algorithm, case.reading, case.base, case.saved, kind, dict(fitted))
