import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.data.partition.composition import (
    checked_weights,
    normalised_shares,
    ratio_shares,
)


def test_percentages_count_as_shares() -> None:
    assert (
        normalised_shares((70.0, 30.0), "row").tolist()
        == normalised_shares((0.7, 0.3), "row").tolist()
    )


@pytest.mark.parametrize("numbers", [(), (0.4, 0.4), (60.0, 60.0), (2.0, -1.0)])
def test_refuses_other_numbers_and_says_where_they_are(numbers: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="row 7 must be"):
        normalised_shares(numbers, "row 7")


def test_labels_of_the_group_share_evenly() -> None:
    # 80 % over 5 even digits, 20 % over 5 odd ones.
    shares = ratio_shares(10, range(0, 10, 2), 0.8)
    assert shares == pytest.approx((0.16, 0.04) * 5)


@given(classes=st.integers(2, 12), share=st.floats(0, 1), data=st.data())
def test_ratio_shares_sum_to_one(classes: int, share: float, data: st.DataObject) -> None:
    group = data.draw(st.sets(st.integers(0, classes - 1), min_size=1, max_size=classes - 1))
    assert sum(ratio_shares(classes, group, share)) == pytest.approx(1)


@pytest.mark.parametrize("group", [(), (0, 1, 2), (0, 5)])
def test_refuses_an_impossible_group(group: tuple[int, ...]) -> None:
    with pytest.raises(PlanError, match="some, not all, of the labels"):
        ratio_shares(3, group, 0.5)


@pytest.mark.parametrize("numbers", [(), (0.0, 0.0), (2.0, -1.0), (math.nan, 1.0), (math.inf,)])
def test_refuses_invalid_weights_and_says_where_they_are(numbers: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="row 7 must be"):
        checked_weights(numbers, "row 7")


def test_weights_are_not_rescaled() -> None:
    assert checked_weights((3.0, 0.0, 2.0), "row").tolist() == [3.0, 0.0, 2.0]
