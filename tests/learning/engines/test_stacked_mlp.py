"""Stacked layers compute what the layers of each network compute."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from overheard.learning.engines.sequential import SparseEmbeddingBag, can_be_sparse
from overheard.learning.engines.stacked_mlp import ReusedMemory, StackedMlp
from overheard.learning.engines.vmapped_networks import VmappedNetworks


@pytest.mark.parametrize(
    "aim", [(0.0, "cross_entropy"), (0.3, "cross_entropy"), (0.0, "squared_error")], ids=str
)
@pytest.mark.parametrize("bend", [nn.ReLU(inplace=True), nn.LeakyReLU(0.1), nn.Tanh()])
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_and_losses_equal_those_of_vmap(bend, bias, aim):
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(6, 5, bias=bias), bend, nn.Linear(5, 3, bias=bias)
    ).double()
    generator = torch.Generator().manual_seed(0)
    parameters = [
        torch.randn(4, *p.shape, dtype=torch.float64, generator=generator)
        for p in model.parameters()
    ]
    inputs = torch.randn(4, 7, 2, 3, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 3, (4, 7), generator=generator)
    weights = torch.rand(4, 7, dtype=torch.float64, generator=generator)
    found = []
    for way in (StackedMlp(model, *aim), VmappedNetworks(model, *aim)):
        gradients = [torch.empty_like(p) for p in parameters]
        with torch.no_grad():
            losses = way.write_gradients(gradients, parameters, inputs, labels, weights)
        found.append([*gradients, losses])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


@pytest.mark.parametrize("way", [StackedMlp, VmappedNetworks])
def test_numbers_and_several_labels_have_the_computed_gradient(way):
    # Weights (2, 0) give an input of 1 the outputs (2, 0). Numbers (1, 0): losses 1 and 0 of
    # which the mean is 1/2, slopes 2 (2 - 1) / 2 = 1 and 0. Labels (0, 1): at outputs (0, 0)
    # losses log 2, slopes (1/2 - 0) / 2 and (1/2 - 1) / 2.
    model = nn.Sequential(nn.Linear(1, 2, bias=False)).double()
    for loss, outputs, labels, expected, slope in (
        ("squared_error", [[2.0], [0.0]], [[[1.0, 0.0]]], 0.5, [1.0, 0.0]),
        (
            "binary_cross_entropy",
            [[0.0], [0.0]],
            [[[0.0, 1.0]]],
            math.log(2),
            [0.25, -0.25],
        ),
    ):
        weights = torch.tensor([outputs], dtype=torch.float64)
        gradients = [torch.empty_like(weights)]
        with torch.no_grad():
            losses = way(model, 0.0, loss).write_gradients(
                gradients,
                [weights],
                torch.ones(1, 1, 1, dtype=torch.float64),
                torch.tensor(labels),
                torch.ones(1, 1, dtype=torch.float64),
            )
        assert losses.tolist() == pytest.approx([expected])
        assert gradients[0].flatten().tolist() == pytest.approx(slope)


@pytest.mark.parametrize("way", [StackedMlp, VmappedNetworks])
def test_a_matched_smoothed_target_has_no_gradient_and_the_loss_of_its_entropy(way):
    # Weights (ln 3, 0) give an input of 1 the probabilities (3/4, 1/4). At smoothing 1/2 the
    # target of label 0 is 1/2 (1, 0) + 1/4 = (3/4, 1/4): met. Label 1 has (1/4, 3/4), so its
    # slope is (1/2, -1/2). Each example weighs 1/2, in a member of its own.
    model = nn.Sequential(nn.Linear(1, 2, bias=False)).double()
    weights = torch.tensor([[[math.log(3)], [0.0]]] * 2, dtype=torch.float64)
    gradients = [torch.empty_like(weights)]
    with torch.no_grad():
        losses = way(model, 0.5).write_gradients(
            gradients,
            [weights],
            torch.ones(2, 1, 1, dtype=torch.float64),
            torch.tensor([[0], [1]]),
            torch.full((2, 1), 0.5, dtype=torch.float64),
        )
    assert gradients[0].flatten().tolist() == pytest.approx([0, 0, 0.25, -0.25], abs=1e-15)
    met = -(3 / 4 * math.log(3 / 4) + 1 / 4 * math.log(1 / 4))
    missed = -(1 / 4 * math.log(3 / 4) + 3 / 4 * math.log(1 / 4))
    assert losses.tolist() == pytest.approx([met / 2, missed / 2], abs=1e-15)


@pytest.mark.parametrize("way", [StackedMlp, VmappedNetworks])
def test_a_correct_expected_rating_has_no_gradient_and_a_wrong_one_the_computed_gradient(way):
    # Weights (ln 3, 0) give an input of 1 the probabilities (3/4, 1/4), so a rating of 1/4 is
    # expected: (1/4)^2 from label 0 and (3/4)^2 from label 1. The rating's slope at the logits
    # is 3/4 (0 - 1/4) and 1/4 (1 - 1/4), -+ 3/16, times 2 (1/4) or 2 (-3/4). Weights (0, 0)
    # with one example of each label even out. Each member's two examples weigh 1/2.
    model = nn.Sequential(nn.Linear(1, 2, bias=False)).double()
    sure, even = [[math.log(3)], [0.0]], [[0.0], [0.0]]
    weights = torch.tensor([sure, sure, even], dtype=torch.float64)
    gradients = [torch.empty_like(weights)]
    with torch.no_grad():
        losses = way(model, 0.0, "squared_error").write_gradients(
            gradients,
            [weights],
            torch.ones(3, 2, 1, dtype=torch.float64),
            torch.tensor([[0, 0], [1, 1], [0, 1]]),
            torch.full((3, 2), 0.5, dtype=torch.float64),
        )
    assert losses.tolist() == pytest.approx([1 / 16, 9 / 16, 1 / 4], abs=1e-15)
    assert gradients[0].flatten().tolist() == pytest.approx(
        [-3 / 32, 3 / 32, 9 / 32, -9 / 32, 0, 0], abs=1e-15
    )


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


LIKE = torch.zeros((), dtype=torch.float64)


def test_results_of_other_names_stay() -> None:
    memory = ReusedMemory()
    first = memory.take("first", LIKE, 3).fill_(1.0)
    memory.take("second", LIKE, 3).fill_(2.0)
    assert first.tolist() == [1.0, 1.0, 1.0]
