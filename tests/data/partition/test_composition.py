import math

import pytest

from overheard.core.errors import PlanError
from overheard.data.partition.composition import (
    checked_weights,
    ratio_shares,
)


def test_labels_of_the_group_share_evenly() -> None:
    # 80 % over 5 even digits, 20 % over 5 odd ones.
    shares = ratio_shares(10, range(0, 10, 2), 0.8)
    assert shares == pytest.approx((0.16, 0.04) * 5)


@pytest.mark.parametrize("group", [(), (0, 1, 2), (0, 5)])
def test_refuses_an_impossible_group(group: tuple[int, ...]) -> None:
    with pytest.raises(PlanError, match="some, not all, of the labels"):
        ratio_shares(3, group, 0.5)


@pytest.mark.parametrize("numbers", [(), (0.0, 0.0), (2.0, -1.0), (math.nan, 1.0), (math.inf,)])
def test_refuses_invalid_weights_and_says_where_they_are(numbers: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="row 7 must be"):
        checked_weights(numbers, "row 7")
