"""Settings of the prior knowledge that cannot be are refused."""

from typing import Any

import pytest

from overheard.core.errors import PlanError
from overheard.data.partition.known_user_settings import KnownUserSettings


@pytest.mark.parametrize(
    "settings", [{"shadow_devices": True}, {"unseen": 1}, {"holdout": 1}, {"per_label": 1}]
)
def test_refuses_profiles_with_settings_of_users(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="prior 'profile' does not name users: leave out"):
        KnownUserSettings("profile", **settings)
    KnownUserSettings("random", **settings)
    KnownUserSettings("profile", records=3)
