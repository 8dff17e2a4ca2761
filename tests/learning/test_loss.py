"""The losses that a recipe can name, computed by hand."""

import math

import pytest
import torch

from overheard.learning.loss import mean_loss, per_example_loss

LOGITS = torch.tensor([[0.0, 0.0, math.log(2)], [0.0, 0.0, 0.0]], dtype=torch.float64)
LABELS = torch.tensor([2, 0])
"""Softmax (1/4, 1/4, 1/2) and (1/3, 1/3, 1/3): ratings of 5/4 and 1 are expected."""


def test_the_squared_error_is_that_of_the_expected_rating():
    # (5/4 - 2)^2 = 9/16 and (1 - 0)^2 = 1; their mean is 25/32.
    each = per_example_loss(LOGITS, LABELS, "squared_error", 0.0)
    assert each.tolist() == pytest.approx([9 / 16, 1])
    mean = mean_loss(LOGITS, LABELS, "squared_error", 0.0)
    assert float(mean) == pytest.approx(25 / 32)


def test_the_cross_entropy_is_that_of_the_smoothed_target():
    # -log 1/2 and -log 1/3. Smoothed by 3/10 the first target is (1/10, 1/10, 8/10).
    plain, even = math.log(2), math.log(3)
    each = per_example_loss(LOGITS, LABELS, "cross_entropy", 0.0)
    assert each.tolist() == pytest.approx([plain, even])
    each = per_example_loss(LOGITS, LABELS, "cross_entropy", 0.3)
    assert each.tolist() == pytest.approx([0.2 * math.log(4) + 0.8 * plain, even])
    mean = mean_loss(LOGITS, LABELS, "cross_entropy", 0.3)
    assert float(mean) == pytest.approx((0.2 * math.log(4) + 0.8 * plain + even) / 2)


NUMBERS = torch.tensor([[1.0, 3.0], [0.0, 2.0]], dtype=torch.float64)
WANTED = torch.tensor([[0.0, 1.0], [0.0, 2.0]])


def test_the_squared_error_of_numbers_is_averaged_over_them():
    # (1 + 4) / 2 and 0; their mean is 5/4.
    assert per_example_loss(NUMBERS, WANTED, "squared_error", 0.0).tolist() == [2.5, 0.0]
    assert float(mean_loss(NUMBERS, WANTED, "squared_error", 0.0)) == 1.25


def test_the_binary_cross_entropy_is_averaged_over_labels():
    # Logits of log 3 and 0 are probabilities of 3/4 and 1/2.
    logits = torch.tensor([[math.log(3), 0.0]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0]])
    (each,) = per_example_loss(logits, labels, "binary_cross_entropy", 0.0).tolist()
    assert each == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)
    assert float(mean_loss(logits, labels, "binary_cross_entropy", 0.0)) == pytest.approx(each)
