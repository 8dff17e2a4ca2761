from itertools import pairwise

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.augment import augmented


def images() -> Examples:
    """A bright dot in the upper left for label 0, in the lower right for label 1."""
    inputs = torch.zeros(5, 1, 8, 8)
    labels = torch.tensor([0, 0, 0, 1, 1])
    inputs[labels == 0, 0, 2, 2] = 1.0
    inputs[labels == 1, 0, 6, 6] = 1.0
    return Examples(inputs, labels)


def texts() -> Examples:
    said = [[5, 6, 7, 8, 9, 0, 0], [1, 2, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0]]
    return Examples(torch.tensor(said), torch.tensor([0, 0, 1]))


def table() -> Examples:
    """Columns: far apart by class; 7 everywhere."""
    rows = torch.tensor([[0.0, 7.0], [1.0, 7.0], [10.0, 7.0], [11.0, 7.0], [12.0, 7.0]])
    return Examples(rows, torch.tensor([0, 0, 1, 1, 1]))


@pytest.mark.parametrize("few", [images(), texts(), table()], ids=["images", "texts", "table"])
class TestWhateverTheInputs:
    def test_originals_stand_first_and_copies_fill_each_class_up(self, few: Examples) -> None:
        many = augmented(few, 20, Seed(0))
        assert many.inputs[: len(few)].equal(few.inputs)
        assert many.inputs.shape[1:] == few.inputs.shape[1:]
        assert many.inputs.dtype == few.inputs.dtype
        assert many.counts(2).tolist() == [20, 20]

    def test_the_same_seed_makes_the_same_copies_and_another_others(
        self, few: Examples
    ) -> None:
        first, again, other = (augmented(few, 20, Seed(value)).inputs for value in (1, 1, 2))
        assert first.equal(again)
        assert not first.equal(other)

    def test_a_class_with_enough_is_left_as_it_is(self, few: Examples) -> None:
        assert augmented(few, 1, Seed(0)) is few


def test_an_image_moves_a_little_and_keeps_what_its_label_says() -> None:
    many = augmented(images(), 30, Seed(0))
    copies, labels = many.inputs[5:, 0], many.labels[5:]
    bright = copies.flatten(1).argmax(1)
    in_upper_left = (bright // 8 < 4) & (bright % 8 < 4)
    assert in_upper_left.equal(labels == 0)
    assert len(copies.unique(dim=0)) == len(copies)


def test_outside_of_an_image_its_border_goes_on() -> None:
    plain = Examples(torch.full((1, 1, 8, 8), -3.0), torch.tensor([0]))
    assert torch.allclose(augmented(plain, 10, Seed(0)).inputs, torch.tensor(-3.0))


def test_a_text_loses_tokens_and_swaps_neighbours_but_gains_none() -> None:
    few = texts()
    many = augmented(few, 200, Seed(0))
    copies = many.inputs[len(few) :]
    of_first = copies[(copies >= 5).any(1)]
    assert len(of_first) == 99  # 198 copies of the two texts of label 0, in turn
    for copy in of_first.tolist():
        said = [token for token in copy if token]
        assert copy == said + [0] * (7 - len(said))
        assert len(set(said)) == len(said)
        assert set(said) <= {5, 6, 7, 8, 9}
        # Nobody falls back by more than a place and a half.
        assert all(later > earlier - 2 for earlier, later in pairwise(said))
    assert any(copy != sorted(copy) for copy in of_first[:, :2].tolist())
    assert (of_first == 0).sum() > 2 * len(of_first)


def test_no_text_is_left_without_a_token() -> None:
    many = augmented(texts(), 200, Seed(0))
    assert bool((many.inputs != 0).any(1).all())
    assert many.inputs[many.labels == 1][:, 0].unique().tolist() == [3]


def test_a_row_is_mixed_with_its_own_class_and_a_constant_column_stays() -> None:
    many = augmented(table(), 100, Seed(0))
    first = many.inputs[:, 0]
    # Within the class's range, give or take noise of 0.05 * 0.5 and 0.05 * 0.82: 5 times that.
    assert bool(((first > -0.2) & (first < 1.2))[many.labels == 0].all())
    assert bool(((first > 9.8) & (first < 12.2))[many.labels == 1].all())
    assert torch.allclose(many.inputs[:, 1], torch.tensor(7.0))


def test_a_lone_row_can_only_be_repeated() -> None:
    lone = Examples(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
    assert torch.allclose(augmented(lone, 5, Seed(0)).inputs, torch.tensor([1.0, 2.0]))
