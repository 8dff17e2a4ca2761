"""What a release leaves out, and what its owner should read before it leaves."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of an audit that a release does not contain.

    Args:
        what: what it is, in words without names or figures of clients.
        why: why it is left out.

    """

    what: str
    why: str


@final
@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """What a release may contain.

    Args:
        least_group: figures on fewer clients than this are left out.
        with_names: whether names of parties stay as they are.
        with_clients: whether the claims about each client, and what is true of it, stay.

    """

    least_group: int = 5
    with_names: bool = False
    with_clients: bool = False


KEPT = (
    "the title, the names of arms and of classes, and the table [release] of the plan, as they "
    "were written",
    "your own words in officer.toml, and the names and reasons in a policy",
)
"""Texts of people, which a release contains as they are."""
