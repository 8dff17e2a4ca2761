"""The sparse embedding bag equals `nn.EmbeddingBag`."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from overheard.learning.engines.sequential import SparseEmbeddingBag, can_be_sparse

WORDS, LENGTH = 6, 3


def bag(padding: int | None = 0) -> nn.EmbeddingBag:
    made = nn.EmbeddingBag(WORDS, 2, mode="mean", padding_idx=padding, dtype=torch.float64)
    with torch.no_grad():
        made.weight.copy_(torch.arange(12.0, dtype=torch.float64).view(WORDS, 2))
    return made


@given(
    st.lists(
        st.lists(st.integers(0, WORDS - 1), min_size=LENGTH, max_size=LENGTH),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0, None, 2]),
)
def test_values_and_gradients_equal_those_of_torch(texts, padding):
    tokens = torch.tensor(texts)
    plain, sparse = bag(padding), SparseEmbeddingBag(bag(padding))
    weights = torch.arange(2.0 * len(tokens), dtype=torch.float64).view(-1, 2)
    torch.testing.assert_close(sparse(tokens), plain(tokens), atol=1e-12, rtol=0)
    (dense,) = torch.autograd.grad((plain(tokens) * weights).sum(), [plain.weight])
    (slope,) = torch.autograd.grad((sparse(tokens) * weights).sum(), [sparse.weight])
    assert slope.is_sparse
    torch.testing.assert_close(slope.to_dense(), dense, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    "other",
    [
        nn.EmbeddingBag(4, 2, mode="sum"),
        nn.EmbeddingBag(4, 2, mode="mean", max_norm=1.0),
        nn.EmbeddingBag(4, 2, mode="mean", scale_grad_by_freq=True),
        nn.EmbeddingBag(4, 2, mode="mean", include_last_offset=True),
        nn.Embedding(4, 2),
    ],
)
def test_does_not_replace_bags_with_other_options(other):
    assert not can_be_sparse(other)
