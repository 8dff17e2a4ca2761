"""Each score of label shares has a range, at whose ends intervals end."""

import pytest

from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.scorer.label_shares import METRICS
from overheard.statistics.estimate import Estimate


@pytest.mark.parametrize("score", [one.name for one in METRICS])
def test_an_interval_ends_where_the_range_of_its_score_does(score: str) -> None:
    cut = MEASURES[score].cut(Estimate(0.5, -1.0, 9.0))
    assert cut.low == 0.0
    largest = {"l1": 2.0}.get(score, 1.0 if MEASURES[score].unit.endswith("%") else 9.0)
    assert cut.high == largest
