import pytest

from overheard.data.datasets.digits import Digits
from overheard.data.datasets.own import Own
from overheard.data.splits.iid import Iid
from overheard.plans.data_plan import DataPlan


@pytest.mark.parametrize(
    ("source", "split", "is_balanced"),
    [
        ({"kind": "own", "reference": "a.csv"}, "iid", False),
        ({"kind": "own", "reference": "a.csv"}, {"kind": "iid", "fluctuation": 0.2}, False),
        ({"kind": "own", "reference": "a.csv"}, {"kind": "iid", "balanced": True}, True),
        (Own("a.csv"), Iid(), True),
        ("digits", "iid", True),
        (Digits(), {"kind": "iid", "balanced": False}, False),
    ],
)
def test_iid_follows_the_shares_of_own_data_unless_said_otherwise(
    source: object, split: object, is_balanced: bool
) -> None:
    plan = DataPlan.model_validate(
        {"source": source, "split": split, "clients": 2, "examples": 5}
    )
    assert isinstance(plan.split, Iid)
    assert plan.split.balanced == is_balanced
    again = DataPlan.model_validate(plan.model_dump(exclude_none=True))
    assert again == plan
