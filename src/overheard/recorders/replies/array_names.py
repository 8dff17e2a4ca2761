"""The names of arrays that travel without names, as in Flower's older API."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import final

from numpy.lib import format as npy

_LOG = logging.getLogger("overheard")


@final
class ArrayNames:
    """The names of arrays that travel without names.

    Args:
        tensors: names in the order in which arrays are sent, with tensors or arrays of the same
            shapes if it is a mapping.

    """

    def __init__(self, tensors: Iterable[str]) -> None:
        """Begin before anything was sent."""
        self._names = tuple(tensors)
        given = tensors.values() if isinstance(tensors, Mapping) else ()
        shapes = [getattr(one, "shape", None) for one in given]
        self._shapes = [None if one is None else tuple(one) for one in shapes]
        self._is_compared = not self._names
        self._are_used = False

    def compare(self, tensors: Sequence[bytes]) -> None:
        """Compare the names with the first model that is sent, and warn if they do not fit."""
        if self._is_compared:
            return
        self._is_compared = True
        found = [_read_shape(data) for data in tensors]
        count, given = len(found), len(self._names)
        known = bool(self._shapes) and None not in self._shapes
        fits = all(a == b for a, b in zip(self._shapes, found, strict=False)) if known else True
        self._are_used = fits and (count == given or (known and count > given))
        if count != given:
            first = f"the first {given} have these names" if self._are_used else "none is named"
            _LOG.warning(
                "overheard: `tensors` has %d names, but the app sends %d arrays, so %s: give "
                "the names of what is sent, in its order",
                given, count, first,
            )  # fmt: skip
        elif not fits:
            _LOG.warning(
                "overheard: `tensors` names arrays of other shapes than the app sends, so none "
                "is named: give the names of what is sent, in its order"
            )

    def of(self, count: int) -> Sequence[str]:
        """Return the names of so many arrays; those beyond the given names are positions."""
        named = self._names if self._are_used and count >= len(self._names) else ()
        return [*named, *map(str, range(len(named), count))]


def _read_shape(data: bytes) -> tuple[int, ...] | None:
    """Return the shape of a serialised array; None if it is none."""
    file = BytesIO(data)
    # It may be anything, and its parsers may raise any error.
    try:
        if npy.read_magic(file) == (1, 0):
            shape: tuple[int, ...] = npy.read_array_header_1_0(file)[0]
        else:
            shape = npy.read_array_header_2_0(file)[0]
    except Exception:
        return None
    return shape
