"""Mean outputs by class."""

import pytest
import torch

from overheard.learning.confusion import mean_output_by_class


def test_rows_are_the_mean_outputs_of_each_class():
    # Two examples of class 0 with outputs (1/2, 1/2) and (3/4, 1/4): mean (5/8, 3/8); one of
    # class 1 with (1/5, 4/5).
    logits = torch.tensor([[1.0, 1.0], [3.0, 1.0], [1.0, 4.0]]).log()
    rows = mean_output_by_class(logits, torch.tensor([0, 0, 1]))
    expected = torch.tensor([[0.625, 0.375], [0.2, 0.8]], dtype=torch.float64)
    torch.testing.assert_close(rows, expected, atol=1e-6, rtol=0)


def test_refuses_a_class_without_examples():
    with pytest.raises(ValueError, match="every class"):
        mean_output_by_class(torch.zeros(2, 3), torch.tensor([0, 1]))
