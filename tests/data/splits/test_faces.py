import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.faces import Faces


def counts(classes: int, sizes: list[int], pool: int, seed: int = 0) -> list[list[int]]:
    labels = torch.arange(pool) % classes
    rows = Faces().assign(labels, None, torch.tensor(sizes), classes, Seed(seed))
    return [labels[client_rows].bincount(minlength=classes).tolist() for client_rows in rows]


def test_each_number_of_labels_is_equally_likely() -> None:
    # 400 clients, four numbers: 100 +- 8.7 each; four deviations are 35.
    label_counts = [
        sum(n > 0 for n in counts_of_client)
        for counts_of_client in counts(4, [20] * 400, 40_000)
    ]
    assert all(abs(label_counts.count(number) - 100) < 35 for number in (1, 2, 3, 4))


def test_shares_of_two_labels_are_uniform() -> None:
    # With both labels, the share of the first is uniform: a quarter are below 0.25.
    both = [
        counts_of_client
        for counts_of_client in counts(2, [100] * 800, 160_000)
        if min(counts_of_client) > 0
    ]
    low = sum(counts_of_client[0] <= 25 for counts_of_client in both) / len(both)
    assert low == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / len(both)) ** 0.5)


def test_refuses_a_pool_with_too_few_examples_per_label() -> None:
    # The pool has two examples of each of 20 labels. A client of 19 needs 10 labels or more and
    # at most two examples of each, and uniform shares are never that even.
    with pytest.raises(
        PlanError, match=r"faces: too few examples are left for client \d of 19"
    ):
        counts(20, [19, 19], 40)
