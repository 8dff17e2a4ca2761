"""Settings of the prior knowledge that cannot be are refused."""

from typing import Any

import pytest

from overheard.core.errors import PlanError
from overheard.data.partition.known_user_settings import KnownUserSettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 0.0}, "share must be above 0, got 0.0"),
        ({"share": 1.0}, "share must be below 1, got 1.0"),
        ({"share": float("nan")}, "share must be a finite number, got nan"),
        ({"records": 0}, "records must be 1 or more"),
        ({"per_label": 0}, "per_label must be 1 or more"),
        ({"unseen": -1}, "unseen must be 0 or more"),
        ({"holdout": -1}, "holdout must be 0 or more"),
    ],
)
def test_refuses_numbers_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KnownUserSettings(**settings)


@pytest.mark.parametrize(
    "settings", [{"shadow_devices": True}, {"unseen": 1}, {"holdout": 1}, {"per_label": 1}]
)
def test_refuses_profiles_with_settings_of_users(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="prior 'profile' does not name users: leave out"):
        KnownUserSettings("profile", **settings)
    KnownUserSettings("random", **settings)
    KnownUserSettings("profile", records=3)
