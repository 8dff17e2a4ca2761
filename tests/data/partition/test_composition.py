import math

import pytest

from overheard.core.errors import PlanError
from overheard.data.partition.composition import (
    checked_weights,
)


@pytest.mark.parametrize("numbers", [(), (0.0, 0.0), (2.0, -1.0), (math.nan, 1.0), (math.inf,)])
def test_refuses_invalid_weights_and_says_where_they_are(numbers: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="row 7 must be"):
        checked_weights(numbers, "row 7")
