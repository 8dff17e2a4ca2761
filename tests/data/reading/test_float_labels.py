"""Labels that are no classes: their kind, and their scale."""

import pytest
import torch

from overheard.data.reading.float_labels import (
    float_label_rows,
    kind_of_labels,
    standardise_numbers,
)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (torch.tensor([0, 2, 1]), "classification"),
        (torch.tensor([[0.0, 1.0], [1.0, 1.0]]), "multi_label"),
        (torch.tensor([[0], [1]]), "multi_label"),
        (torch.tensor([0.0, 1.0]), "regression"),
        (torch.tensor([[0.5, 1.0]]), "regression"),
    ],
)
def test_shape_and_type_tell_the_kind(labels: torch.Tensor, kind: str) -> None:
    assert kind_of_labels(labels) == kind


@pytest.mark.parametrize("labels", [torch.tensor([[0, 2]]), torch.zeros(1, 1, 1).fill_(0.5)])
def test_refuses_labels_of_no_kind(labels: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="a row of 0 and 1"):
        kind_of_labels(labels)


def test_each_example_has_a_row() -> None:
    assert float_label_rows(torch.tensor([1.0, 2.0]).double()).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match="NaN"):
        float_label_rows(torch.tensor([torch.nan]))


def test_numbers_are_in_deviations_of_the_training_part() -> None:
    # The training part has 1 and 5: mean 3, deviation 2. So 9 is 3 deviations above.
    rows, is_test = torch.tensor([[1.0], [9.0], [5.0]]), torch.tensor([False, True, False])
    assert standardise_numbers(rows, is_test).flatten().tolist() == [-1.0, 3.0, 1.0]
    with pytest.raises(ValueError, match="the same number"):
        standardise_numbers(torch.ones(3, 1), is_test)
