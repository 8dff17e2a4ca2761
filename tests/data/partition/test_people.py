"""What cannot be known of people is refused."""

from typing import Any

import pytest

from overheard.core.errors import PlanError
from overheard.data.partition.people import People


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"share": 0.0}, "share lies between 0 and 1, got 0.0"),
        ({"share": 1.0}, "share lies between 0 and 1, got 1.0"),
        ({"share": float("nan")}, "share lies between 0 and 1"),
        ({"records": 0}, "records and per_label must be 1 or more"),
        ({"per_label": 0}, "records and per_label must be 1 or more"),
        ({"unseen": -1}, "unseen and holdout must be 0 or more"),
        ({"holdout": -1}, "unseen and holdout must be 0 or more"),
    ],
)
def test_refuses_numbers_that_mean_nothing(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        People(**settings)


@pytest.mark.parametrize(
    "settings", [{"shadow_devices": True}, {"unseen": 1}, {"holdout": 1}, {"per_label": 1}]
)
def test_a_profile_has_nothing_that_a_user_has(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="a profile is no user: leave out"):
        People("profile", **settings)
    People("random", **settings)
    People("profile", records=3)
