import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.quantity import Quantity
from overheard.simulation.virtual_client import VirtualClient, draw_counts

LABELS = torch.tensor([0, 0, 0, 1, 1, 0, 1, 1, 1, 1])
HALVES = (torch.arange(5), torch.arange(5, 10))


class TestRows:
    def test_are_of_its_half_and_have_its_label_counts(self) -> None:
        rows = VirtualClient(3, 1, 0, (2, 3)).draw_rows(LABELS, HALVES, Seed(0))
        assert LABELS[rows].bincount().tolist() == [2, 3]
        assert set(rows.tolist()) <= {5, 6, 7, 8, 9}

    def test_repeat_only_after_all_of_the_label_are_used(self) -> None:
        # Half 0 has three of label 0, used 2 or 3 times for 7, and two of label 1, used twice.
        rows = VirtualClient(3, 0, 0, (7, 4)).draw_rows(LABELS, HALVES, Seed(0))
        assert sorted(rows.bincount().tolist()) == [2, 2, 2, 2, 3]


class TestCounts:
    def test_come_from_all_splits(self) -> None:
        # One label each, or all three.
        counts_drawn = [
            draw_counts(n, (Quantity(1), Quantity(3)), (9, 9), 3, Seed(0)) for n in range(30)
        ]
        kinds = {tuple(sorted(counts)) for counts in counts_drawn}
        assert kinds == {(0, 0, 9), (3, 3, 3)}

    @pytest.mark.parametrize(
        ("split", "message"),
        [(Quantity(5), "5 classes per client"), (ByUser(), "names no users")],
    )
    def test_a_split_that_cannot_be_drawn_from_raises_its_own_error(
        self, split, message
    ) -> None:
        with pytest.raises(PlanError, match=message):
            draw_counts(0, (split,), (10, 10), 4, Seed(0))


def test_a_resampled_client_repeats_some_examples_and_never_has_others() -> None:
    labels = torch.zeros(4000, dtype=torch.long)
    halves = (torch.arange(2000), torch.arange(2000, 4000))
    rows = VirtualClient(3, 1, 0, (2000,), resampled=True).draw_rows(labels, halves, Seed(0))
    # 2,000 draws with replacement from 2,000 contain a share of 1 - 1/e = 0.632.
    assert len(rows) == 2000
    assert 0.60 < len(rows.unique()) / 2000 < 0.66
    assert int(rows.min()) >= 2000
    plain = VirtualClient(3, 1, 0, (2000,)).draw_rows(labels, halves, Seed(0))
    assert len(plain.unique()) == 2000
