"""Settings of a partition, and the words for them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import refuse_classes_in_settings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift, Draws, Schedule
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid

NUMBER = Task((2,), ("age",), kind="regression")


CLASSY = (
    Dirichlet(),
    3,
    Schedule(5, shifts=(DataShift(0, 2, shares=(0.5, 0.5)),)),
    KnownUserSettings(prior="profile", per_label=None),
    CandidateSettings(canaries="mislabelled"),
)
"""Settings of which each means classes."""


def test_all_of_them_are_named_with_a_mend() -> None:
    with pytest.raises(PlanError) as refused:
        refuse_classes_in_settings(NUMBER, *CLASSY)
    for mend in (
        "choose iid, or by_user",
        "set auxiliary",
        "shift by distortion or new_user",
        "choose 'random'",
        "set canaries = 'labelled'",
    ):
        assert mend in str(refused.value)


@pytest.mark.parametrize("split", [Iid(), ByUser(), None])
def test_others_fit_any_data(split: Iid | ByUser | None) -> None:
    shift = DataShift(0, 2, distortion=0.5)
    refuse_classes_in_settings(
        NUMBER,
        split,
        None,
        Schedule(5, shifts=(shift,)),
        KnownUserSettings(),
        CandidateSettings(canaries="labelled"),
    )


@pytest.mark.parametrize(
    "settings", [{"shadow_devices": True}, {"unseen": 1}, {"holdout": 1}, {"per_label": 1}]
)
def test_refuses_profiles_with_settings_of_users(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="prior 'profile' does not name users: leave out"):
        KnownUserSettings("profile", **settings)
    KnownUserSettings("random", **settings)
    KnownUserSettings("profile", records=3)


TO_FIRST = (1.0, 0.0)


@pytest.mark.parametrize(
    ("rounds", "every", "shifts", "message"),
    [
        (0, None, (), "rounds must be 1 or more"),
        (3, 0, (), "refresh_every"),
        (3, None, (DataShift(0, 3, TO_FIRST),), "shifts in round 3"),
        (3, None, (DataShift(0, 1, TO_FIRST, over=3),), "shifts in round 3"),
        (3, None, (DataShift(0, 1), DataShift(0, 1, TO_FIRST)), "overlapping shifts"),
        (6, None, (DataShift(0, 3), DataShift(0, 1, over=3)), "overlapping shifts"),
    ],
)
def test_impossible_schedules_are_refused(
    rounds: int, every: int | None, shifts: tuple[DataShift, ...], message: str
) -> None:
    with pytest.raises((ValueError, PlanError), match=message):
        Schedule(rounds, every, shifts)


@pytest.mark.parametrize(
    "settings",
    [
        {"client": -1, "shares": (1.0,)},
        {"round": 0, "shares": (1.0,)},
        {"shares": (0.5, 0.2)},
        {"weights": (0.0, 0.0)},
        {"weights": (-1.0, 2.0)},
        {"weights": (float("inf"), 1.0)},
        {"weights": (float("nan"), 1.0)},
        {"weights": ()},
        {"weights": (1.0, 2.0), "shares": (0.5, 0.5)},
        {"weights": (1.0, 2.0), "new_user": True},
        {"over": 0},
        {"distortion": 1.5},
        {"distortion": float("nan")},
    ],
)
def test_impossible_shifts_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises((ValueError, PlanError), match=r"must|cannot be"):
        DataShift(**{"client": 0, "round": 1, **settings})


@given(
    over=st.lists(st.integers(1, 3), max_size=4),
    weights=st.none() | st.just((1.0, 3.0)),
    distortion=st.none() | st.sampled_from((0.0, 0.5)),
    draws=st.sampled_from(("natural", "exact")),
    number=st.integers(0, 2),
)
def test_a_control_makes_the_same_exchanges_without_any_shift(
    over: list[int],
    weights: tuple[float, ...] | None,
    distortion: float | None,
    draws: Draws,
    number: int,
) -> None:
    planned = [
        DataShift(number, 2, weights=weights, over=rounds, distortion=distortion)
        for number, rounds in enumerate(over)
    ]
    schedule = Schedule(6, 2, tuple(planned))
    control = schedule.control(draws, number)
    assert all(one.is_refresh for one in control.shifts)
    assert (control.rounds, control.refresh_every) == (6, 2)
    assert [(one.client, one.round, one.last_round) for one in control.shifts] == [
        (one.client, one.round, one.last_round) for one in planned
    ]


@pytest.mark.parametrize(
    ("shift", "is_exchange"),
    [
        (DataShift(0, 1), True),
        (DataShift(0, 1, over=2), True),
        (DataShift(0, 1, distortion=0.0), True),
        (DataShift(0, 1, distortion=0.1), False),
        (DataShift(0, 1, weights=(1.0, 2.0)), False),
        (DataShift(0, 1, shares=(0.5, 0.5)), False),
        (DataShift(0, 1, new_user=True), False),
    ],
)
def test_a_shift_that_changes_no_distribution_is_an_exchange(
    shift: DataShift, is_exchange: bool
) -> None:
    assert shift.is_refresh is is_exchange
