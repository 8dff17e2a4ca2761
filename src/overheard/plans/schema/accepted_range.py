"""Finds the range of a number setting by asking its class which numbers it accepts.

The classes check their settings themselves and say what is wrong. No second list of ranges can
then differ from what they accept.
"""

from collections.abc import Callable, Mapping

Number = int | float

LARGE = 2**31 - 1
"""A setting that accepts this number has no maximum, and its negative no minimum."""

TRIED = 64
"""Whole numbers on either side of the known one that are tried one by one."""

_STEP = 1e-9
"""Distance from a bound at which a setting of fractions is tried."""

_BOUNDS = (-1.0, 0.0, 0.5, 1.0, 2.0)
"""Bounds that settings of fractions may have."""


def accepted_range(
    accepts: Callable[[Number], bool], known: Number, *, is_whole: bool
) -> Mapping[str, Number]:
    """Return the range as JSON schema states it, such as `{"minimum": 1}`; {} = unbounded.

    A setting that also refuses numbers between its bounds, such as one that must divide
    another number, gets no bound on that side.

    Args:
        accepts: whether the setting may be this number.
        known: a number that is accepted.
        is_whole: whether the setting is a whole number.

    """
    find = _whole_bound if is_whole else _bound
    lower = {} if accepts(-LARGE) else find(accepts, known, -1)
    upper = {} if accepts(LARGE) else find(accepts, known, 1)
    return {**lower, **upper}


def _whole_bound(
    accepts: Callable[[Number], bool], known: Number, direction: int
) -> Mapping[str, Number]:
    """Return the last accepted whole number in a direction, by halving the distance."""
    accepted, refused = int(known), direction * LARGE
    while abs(refused - accepted) > 1:
        middle = (accepted + refused) // 2
        if accepts(middle):
            accepted = middle
        else:
            refused = middle
    steps = range(min(abs(accepted - int(known)), TRIED))
    if not all(accepts(known + direction * step) for step in steps):
        return {}
    return {"minimum" if direction < 0 else "maximum": accepted}


def _bound(
    accepts: Callable[[Number], bool], known: Number, direction: int
) -> Mapping[str, Number]:
    """Return the usual bound in a direction that the setting has; {} if it has none."""
    side = "inimum" if direction < 0 else "aximum"
    for bound in _BOUNDS:
        beyond, within = bound + direction * _STEP, bound - direction * _STEP
        if (bound - known) * direction < 0 or accepts(beyond):
            continue
        if accepts(bound):
            return {f"m{side}": bound}
        if accepts(within):
            return {f"exclusiveM{side}": bound}
    return {}
