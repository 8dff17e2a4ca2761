"""The order of batches."""

from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.learning.batches import epoch_order


@given(examples=st.integers(1, 50), epoch=st.integers(0, 5))
def test_an_epoch_uses_every_example_once(examples, epoch):
    order = epoch_order(Seed(0), 1, "client/0", epoch, examples)
    assert sorted(order.tolist()) == list(range(examples))


def test_the_order_depends_on_every_argument():
    orders = [
        epoch_order(Seed(seed), round, name, epoch, 20).tolist()
        for seed, round, name, epoch in [
            (0, 0, "a", 0),
            (1, 0, "a", 0),
            (0, 1, "a", 0),
            (0, 0, "b", 0),
            (0, 0, "a", 1),
        ]
    ]
    assert len({tuple(order) for order in orders}) == 5
