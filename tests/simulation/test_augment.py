from itertools import pairwise

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.augment import augment_examples


def images() -> Examples:
    """Return images with a bright dot: upper left for label 0, lower right for label 1."""
    inputs = torch.zeros(5, 1, 8, 8)
    labels = torch.tensor([0, 0, 0, 1, 1])
    inputs[labels == 0, 0, 2, 2] = 1.0
    inputs[labels == 1, 0, 6, 6] = 1.0
    return Examples(inputs, labels)


def texts() -> Examples:
    tokens = [[5, 6, 7, 8, 9, 0, 0], [1, 2, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0]]
    return Examples(torch.tensor(tokens), torch.tensor([0, 0, 1]))


def table() -> Examples:
    """Return a table with one column that separates the classes, and one of 7 everywhere."""
    rows = torch.tensor([[0.0, 7.0], [1.0, 7.0], [10.0, 7.0], [11.0, 7.0], [12.0, 7.0]])
    return Examples(rows, torch.tensor([0, 0, 1, 1, 1]))


@pytest.mark.parametrize(
    "originals", [images(), texts(), table()], ids=["images", "texts", "table"]
)
class TestAllKindsOfInputs:
    def test_originals_come_first_and_copies_fill_up_each_class(
        self, originals: Examples
    ) -> None:
        result = augment_examples(originals, 20, Seed(0))
        assert result.inputs[: len(originals)].equal(originals.inputs)
        assert result.inputs.shape[1:] == originals.inputs.shape[1:]
        assert result.inputs.dtype == originals.inputs.dtype
        assert result.label_counts(2).tolist() == [20, 20]

    def test_a_class_with_enough_examples_is_not_changed(self, originals: Examples) -> None:
        assert augment_examples(originals, 1, Seed(0)) is originals


def test_an_image_moves_only_a_little() -> None:
    result = augment_examples(images(), 30, Seed(0))
    copies, labels = result.inputs[5:, 0], result.labels[5:]
    bright = copies.flatten(1).argmax(1)
    in_upper_left = (bright // 8 < 4) & (bright % 8 < 4)
    assert in_upper_left.equal(labels == 0)
    assert len(copies.unique(dim=0)) == len(copies)


def test_a_text_loses_tokens_and_swaps_neighbours_but_gains_none() -> None:
    originals = texts()
    result = augment_examples(originals, 200, Seed(0))
    copies = result.inputs[len(originals) :]
    copies_of_first = copies[(copies >= 5).any(1)]
    assert len(copies_of_first) == 99  # 198 copies of the two texts of label 0, in turn
    for copy in copies_of_first.tolist():
        tokens = [token for token in copy if token]
        assert copy == tokens + [0] * (7 - len(tokens))
        assert len(set(tokens)) == len(tokens)
        assert set(tokens) <= {5, 6, 7, 8, 9}
        # No token moves back by more than 1.5 positions.
        assert all(later > earlier - 2 for earlier, later in pairwise(tokens))
    assert any(copy != sorted(copy) for copy in copies_of_first[:, :2].tolist())
    assert (copies_of_first == 0).sum() > 2 * len(copies_of_first)


def test_no_text_loses_all_tokens() -> None:
    result = augment_examples(texts(), 200, Seed(0))
    assert bool((result.inputs != 0).any(1).all())
    assert result.inputs[result.labels == 1][:, 0].unique().tolist() == [3]


def test_a_row_is_mixed_within_its_class_and_constant_columns_are_kept() -> None:
    result = augment_examples(table(), 100, Seed(0))
    first = result.inputs[:, 0]
    # Within the range of the class, plus 5 deviations of noise of 0.05 * 0.5 or 0.05 * 0.82.
    assert bool(((first > -0.2) & (first < 1.2))[result.labels == 0].all())
    assert bool(((first > 9.8) & (first < 12.2))[result.labels == 1].all())
    assert torch.allclose(result.inputs[:, 1], torch.tensor(7.0))
