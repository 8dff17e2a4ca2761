"""Lower bounds of epsilon from canaries for claims that are a trade-off curve."""

from overheard.epsilon.trade_off import CurveFamily, InversePower, repeated

LEAST_SHARE = 1 / 256
"""The share of the first strength below which none is tested."""


def is_curve_refuted(
    curve: InversePower, canaries: int, guesses: int, right: int, level: float
) -> bool:
    """Return whether this many right guesses refute a trade-off curve.

    Each canary was in by a fair coin, whatever became of the others. Mahloujifar, Melis and
    Chaudhuri 2024 ("Auditing f-differential privacy in one run", arXiv 2410.22235), the
    algorithm audit_rh_with_cap. Right and wrong guesses of a curve that holds have at most
    the probabilities that the recursion gives.

    Args:
        curve: see `InversePower`.
        canaries: all canaries, those without a guess too.
        guesses: those that the attack says to be in or out.
        right: right guesses.
        level: the probability with which a true curve may be refuted.

    """
    found = level * right / canaries
    passed = level * (guesses - right) / canaries
    for index in range(right - 1, -1, -1):
        grown = max(passed, curve(found))
        if grown == passed:
            break
        found = min(found + index / (guesses - index) * (grown - passed), 1.0)
        passed = grown
    return found + passed > guesses / canaries


def largest_refuted_strength(
    family: CurveFamily,
    canaries: int,
    guesses: int,
    right: int,
    *,
    level: float = 0.05,
    times: int = 1,
) -> float:
    """Return the largest strength of a family whose curve is refuted; 0 = none.

    Args:
        family: the family of the claim.
        canaries: all canaries.
        guesses: those with a guess.
        right: right guesses.
        level: the probability with which the true strength may be refuted.
        times: steps of the claimed relation from a canary in to a canary out.

    """

    def is_refuted(strength: float) -> bool:
        curve = repeated(family.inverse_power(strength), times)
        return is_curve_refuted(curve, canaries, guesses, right, level)

    low = high = family.first
    if is_refuted(low):
        while is_refuted(high := min(2 * low, family.largest)):
            if high == family.largest:
                return high
            low = high
    else:
        while not is_refuted(low := high / 2):
            if low < LEAST_SHARE * family.first:
                return 0.0
            high = low
    while high - low > family.resolution * low:
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low
