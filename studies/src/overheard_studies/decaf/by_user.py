"""The distance of each user's claim, with the published one."""

from collections.abc import Sequence
from dataclasses import replace

from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard_studies.decaf.published_scores import score_published_claim
from overheard_studies.decaf.published_users import PublishedUser
from overheard_studies.estimates import FindingFilter, mean_score, reproduced_value
from overheard_studies.reproduced_value import ReproducedValue


def l1_by_user(
    audit: Audit,
    place: FindingFilter,
    users: Sequence[PublishedUser],
    setting: str,
    prefix: str = "",
) -> list[ReproducedValue]:
    """Return one value per user; `"l1_user_1"` is the first user, as in the paper."""
    return [
        reproduced_value(
            f"{prefix}l1_user_{number}",
            setting,
            mean_score(audit, replace(place, target=client(number - 1)), "l1"),
            score_published_claim(user, "l1").value,
            "lower",
        )
        for number, user in enumerate(users, start=1)
    ]
