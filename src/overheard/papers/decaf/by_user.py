"""The distance of each user's claim, with the published one."""

from collections.abc import Sequence
from dataclasses import replace

from overheard.core.parties import client
from overheard.findings.finding import Audit
from overheard.papers.decaf.printed import printed
from overheard.papers.decaf.users import User
from overheard.papers.figure import Figure
from overheard.papers.reading import ReadingPlace, figure, mean


def l1_by_user(
    audit: Audit, place: ReadingPlace, users: Sequence[User], setting: str, prefix: str = ""
) -> list[Figure]:
    """Return one value per user; `l1_user_1` is the first user, as in the paper."""
    return [
        figure(
            f"{prefix}l1_user_{number}",
            setting,
            mean(audit, replace(place, target=client(number - 1)), "l1"),
            printed(user, "l1").value,
            "lower",
        )
        for number, user in enumerate(users, start=1)
    ]
