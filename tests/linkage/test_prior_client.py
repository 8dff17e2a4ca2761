import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.examples import Examples
from overheard.linkage.prior_client import PriorClient, split_priors


def examples(count: int, label: int = 0) -> Examples:
    return Examples(torch.arange(float(count)).reshape(-1, 1), torch.full((count,), label))


def test_splits_prior_examples_into_consecutive_chunks() -> None:
    # Five in two: 5 * 1 // 2 = 2 in the first, 3 in the second; the next user's begin at 5.
    assert split_priors({"ann": examples(5), "ben": examples(2)}, 2) == (
        PriorClient("ann", 0, 0, 2),
        PriorClient("ann", 1, 2, 5),
        PriorClient("ben", 0, 5, 6),
        PriorClient("ben", 1, 6, 7),
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 6))
def test_every_example_is_in_one_chunk_and_chunks_have_similar_sizes(sizes, chunks) -> None:
    clients = split_priors({f"{n}": examples(size) for n, size in enumerate(sizes)}, chunks)
    assert [row for one in clients for row in range(one.begin, one.end)] == list(
        range(sum(sizes))
    )
    for user in {one.user for one in clients}:
        sizes_of_user = [one.end - one.begin for one in clients if one.user == user]
        assert max(sizes_of_user) - min(sizes_of_user) <= 1
        assert min(sizes_of_user) >= 1
