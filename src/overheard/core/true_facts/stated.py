"""Checks of what truth.json states, whatever the fact."""

from collections import Counter
from collections.abc import Iterable

from overheard.core.parties import is_client, is_shadow_device, parse_party

MAX_NAME_LENGTH = 200
"""Longest name of a user, attribute or value, in characters."""


def refuse_repetition(key: str, entries: Iterable[str]) -> None:
    """Refuse what is stated twice: one of two truths is wrong, and nothing says which.

    Raises:
        ValueError: if an entry occurs more than once.

    """
    repeated = [one for one, times in Counter(entries).items() if times > 1]
    if repeated:
        more = f" (and {len(repeated) - 1} more)" if len(repeated) > 1 else ""
        raise ValueError(
            f"{key} states {repeated[0]} twice{more}: keep the one that is right, and remove "
            "the other"
        )


def refuse_others(key: str, names: Iterable[str]) -> None:
    """Refuse names that are no clients, or devices that take part as such.

    Raises:
        ValueError: if there is one.

    """
    for name in dict.fromkeys(names):
        party = parse_party(name)
        if not (is_client(party) or is_shadow_device(party)):
            raise ValueError(
                f"{key} names {name}, which is no client: only clients hold examples"
            )


def refuse_unprintable(kind: str, names: Iterable[str]) -> None:
    """Refuse names that are long or unprintable: they are shown on terminals and in reports.

    Raises:
        ValueError: if there is one.

    """
    for name in names:
        if not name.isprintable() or not 0 < len(name) <= MAX_NAME_LENGTH:
            raise ValueError(
                f"{name[:MAX_NAME_LENGTH]!r} is no valid name of a {kind}: names must be "
                f"printable and have 1 to {MAX_NAME_LENGTH} characters"
            )
