import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.quantity import Quantity
from overheard.simulation.virtual_client import VirtualClient, draw_counts

LABELS = torch.tensor([0, 0, 0, 1, 1, 0, 1, 1, 1, 1])
HALVES = (torch.arange(5), torch.arange(5, 10))


class TestRows:
    def test_are_of_its_half_with_the_labels_that_it_holds(self) -> None:
        rows = VirtualClient(3, 1, 0, (2, 3)).rows(LABELS, HALVES, Seed(0))
        assert LABELS[rows].bincount().tolist() == [2, 3]
        assert set(rows.tolist()) <= {5, 6, 7, 8, 9}

    def test_come_again_only_when_all_of_the_label_were_taken(self) -> None:
        # Half 0 has three of label 0 and two of label 1: 7 of 3 is 2 or 3 each, 4 of 2 is 2.
        rows = VirtualClient(3, 0, 0, (7, 4)).rows(LABELS, HALVES, Seed(0))
        assert sorted(rows.bincount().tolist()) == [2, 2, 2, 2, 3]

    def test_of_a_label_that_it_does_not_hold_there_are_none(self) -> None:
        rows = VirtualClient(3, 0, 0, (0, 2)).rows(LABELS, HALVES, Seed(0))
        assert sorted(rows.tolist()) == [3, 4]

    def test_hang_on_seed_and_number(self) -> None:
        def rows(number: int, seed: int) -> torch.Tensor:
            return VirtualClient(number, 0, 0, (7, 4)).rows(LABELS, HALVES, Seed(seed))

        assert rows(3, 0).equal(rows(3, 0))
        assert not rows(3, 0).equal(rows(4, 0))
        assert not rows(3, 0).equal(rows(3, 1))


class TestCounts:
    def test_sum_to_a_size_of_the_range(self) -> None:
        drawn = [draw_counts(n, (Dirichlet(0.5),), (10, 12), 4, Seed(0)) for n in range(30)]
        assert {sum(counts) for counts in drawn} == {10, 11, 12}

    def test_come_from_all_splits(self) -> None:
        # Of one label each, or of all three.
        drawn = [
            draw_counts(n, (Quantity(1), Quantity(3)), (9, 9), 3, Seed(0)) for n in range(30)
        ]
        kinds = {tuple(sorted(counts)) for counts in drawn}
        assert kinds == {(0, 0, 9), (3, 3, 3)}

    def test_of_one_client_do_not_hang_on_who_else_is_drawn(self) -> None:
        alone = draw_counts(7, (Dirichlet(0.5),), (10, 99), 4, Seed(0))
        assert alone == draw_counts(7, (Dirichlet(0.5),), (10, 99), 4, Seed(0))
        assert alone != draw_counts(8, (Dirichlet(0.5),), (10, 99), 4, Seed(0))

    @pytest.mark.parametrize(
        ("split", "told"), [(Quantity(5), "5 classes a client"), (ByUser(), "names no users")]
    )
    def test_a_split_that_cannot_be_drawn_from_says_so_itself(self, split, told) -> None:
        with pytest.raises(PlanError, match=told):
            draw_counts(0, (split,), (10, 10), 4, Seed(0))


def test_a_resampled_client_meets_some_examples_twice_and_others_never() -> None:
    labels = torch.zeros(4000, dtype=torch.long)
    halves = (torch.arange(2000), torch.arange(2000, 4000))
    rows = VirtualClient(3, 1, 0, (2000,), resampled=True).rows(labels, halves, Seed(0))
    # Of 2,000 draws with replacement from 2,000 a share 1 - 1/e = 0.632 is met at all.
    assert len(rows) == 2000
    assert 0.60 < len(rows.unique()) / 2000 < 0.66
    assert int(rows.min()) >= 2000
    plain = VirtualClient(3, 1, 0, (2000,)).rows(labels, halves, Seed(0))
    assert len(plain.unique()) == 2000
