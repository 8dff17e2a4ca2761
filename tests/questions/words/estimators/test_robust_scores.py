"""Evidence compared with that of most words."""

import pytest
import torch

from overheard.questions.words.estimators.evidence import robust_scores


def test_scores_are_deviations_from_the_median_in_their_median():
    # Median 2; deviations 2, 1, 0, 1, 98 have the median 1.
    found = robust_scores(torch.tensor([0.0, 1, 2, 3, 100]))
    assert found.tolist() == [-2, -1, 0, 1, 98]


def test_rows_that_are_exactly_alike_do_not_divide_by_zero():
    assert robust_scores(torch.tensor([0.0, 0, 0, 5])).tolist() == pytest.approx([0, 0, 0, 1e6])
    assert robust_scores(torch.ones(3)).tolist() == [0, 0, 0]
