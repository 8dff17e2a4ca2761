"""Settings that mean classes, and data without classes."""

import pytest

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import refuse_classes_in_settings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift, Schedule
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
