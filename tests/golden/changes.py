"""Differences between stored and new results: place, old value and new value."""

from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import zip_longest

Alike = Callable[[object, object], bool]

MISSING = object()

LONGEST = 300
"""Most characters of a value in a line."""


def value_changes(
    old: object, new: object, place: str = "", are_alike: Alike = lambda a, b: a == b
) -> Iterator[str]:
    """Yield a line for each value that differs: its place, the old and the new value.

    >>> list(value_changes({"a": {"p": 0.5}, "b": 1}, {"a": {"p": 0.1}, "c": 2}))
    ['a: p: 0.5 -> 0.1', 'b: 1 -> nothing', 'c: nothing -> 2']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{place}: {key}" if place else str(key)
            yield from value_changes(
                old.get(key, MISSING), new.get(key, MISSING), inner, are_alike
            )
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from value_changes(*pair, f"{place}[{number}]", are_alike)
    elif not are_alike(old, new):
        yield f"{place}: {_shown(old)} -> {_shown(new)}"


def line_changes(old: str, new: str, place: str) -> Iterator[str]:
    """Yield a line for each line of a text that differs.

    >>> list(line_changes("a\\nb\\n", "a\\nc\\nd\\n", "page"))
    ["page, line 2: 'b' -> 'c'", "page, line 3: nothing -> 'd'"]
    """
    before, after = old.splitlines(), new.splitlines()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, begin, end, new_begin, new_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        pairs = zip_longest(before[begin:end], after[new_begin:new_end], fillvalue=MISSING)
        for number, (first, second) in enumerate(pairs, new_begin + 1):
            yield f"{place}, line {number}: {_shown(first)} -> {_shown(second)}"


def _shown(value: object) -> str:
    if value is MISSING:
        return "nothing"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
