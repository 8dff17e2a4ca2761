"""What a file states twice, so that nothing says which of both is right."""

import json
from collections.abc import Iterable, Sequence

from overheard.archive.excerpt import printable_excerpt


def refuse_repeated_keys(content: bytes | str) -> None:
    """Refuse JSON with a key twice in an object, of which Python's parsers keep the last.

    Raises:
        ValueError: if there is one, or the content is no JSON.

    """
    try:
        json.loads(content, object_pairs_hook=_refuse_repeated_pairs)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_repeated_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        repeated, *_ = find_repeated(key for key, _ in pairs)
        raise ValueError(f"has the key {printable_excerpt(repeated)!r} twice in one object")


def find_repeated(entries: Iterable[str]) -> list[str]:
    """Return the entries that occur more than once, in the order of their first repetition."""
    seen, repeated = set[str](), dict[str, None]()
    for one in entries:
        if one in seen:
            repeated[one] = None
        seen.add(one)
    return list(repeated)
