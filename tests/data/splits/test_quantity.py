import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.quantity import Quantity

LABELS = torch.arange(600) % 6


@given(held=st.integers(1, 6), seed=st.integers(0, 999))
def test_each_client_holds_its_labels_equally_often(held: int, seed: int) -> None:
    for rows in Quantity(held).assign(LABELS, None, torch.tensor([30, 31]), 6, Seed(seed)):
        counts = LABELS[rows].bincount(minlength=6)
        assert int((counts > 0).sum()) == held
        present = counts[counts > 0]
        assert int(present.max()) - int(present.min()) <= 1


def test_labels_are_used_equally_often() -> None:
    # 6 clients of 2 labels x 50 use every label twice: all 600 examples.
    rows = Quantity(2).assign(LABELS, None, torch.tensor([100] * 6), 6, Seed(2))
    assert torch.cat(rows).sort().values.equal(torch.arange(600))


def test_refuses_more_labels_than_exist() -> None:
    with pytest.raises(PlanError, match="7 classes per client, but there are 6 classes"):
        Quantity(7).assign(LABELS, None, torch.tensor([30]), 6, Seed(0))


def test_refuses_a_pool_that_runs_out_and_says_what_is_left() -> None:
    # Each label has 100; one client wants 150 of one.
    with pytest.raises(PlanError, match="client 0 needs 150 examples each of 1 labels"):
        Quantity(1).assign(LABELS, None, torch.tensor([150]), 6, Seed(0))
