"""Updates are projected to few numbers."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage import update_pca
from overheard.linkage.count_sketch import make_count_sketch
from overheard.linkage.known_updates import load_known_updates
from overheard.linkage.projected_updates import (
    ProjectedUpdates,
    project_updates,
    read_default_layers,
)
from overheard.linkage.update_pca import RoundMeans, fit_round_means, fit_update_pca
from overheard.linkage.user_evidence import fit_user_evidence
from tests.linkage.four_users import DEVICES, make_knowledge, make_view

LARGE = (120, 100)
"""12,000 numbers, enough to be sketched."""


def normal(shape, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=Seed(seed).generator())


@settings(max_examples=20)
@given(st.floats(-3, 3), st.integers(0, 5), st.integers(6, 11))
def test_is_linear(scale, one, other) -> None:
    sketch, first, second = (
        make_count_sketch("w", LARGE),
        normal(LARGE, one),
        normal(LARGE, other),
    )
    torch.testing.assert_close(
        sketch.apply(first + scale * second),
        sketch.apply(first) + scale * sketch.apply(second),
        atol=1e-3,
        rtol=0,
    )


def test_approximately_preserves_inner_products() -> None:
    sketch = make_count_sketch("weight", LARGE)
    rows = [normal(LARGE, seed) for seed in range(20)]
    sketched = torch.stack([sketch.apply(row) / row.norm() for row in rows])
    products = sketched @ sketched.T
    # (2 / 2048)^(1/2) = 0.031 is the standard error; the largest of 190 within four of them.
    assert float((products - torch.eye(20)).abs().max()) < 4 * 0.031


def project(view: View) -> ProjectedUpdates:
    layers = (-1, "all")
    known = {
        layer: load_known_updates(view, make_knowledge(), "simulated", layer, 2)
        for layer in layers
    }
    return project_updates(view, DEVICES, fit_user_evidence(known))


def test_projects_each_layer_of_all_updates_but_those_of_shadow_devices() -> None:
    projected = project(make_view())
    assert list(projected.sender_indices) == ["anon/0-0", "anon/0-1", "anon/1-0", "anon/1-1"]
    assert projected.senders.tolist() == [0, 1, 2, 3]
    assert projected.rounds.tolist() == [0, 0, 1, 1]
    assert [len(places) for places in projected.projections] == [4, 4]
    assert projected.index_of(Party("anon/1-0")) == 2


def test_refuses_unknown_senders_and_shadow_devices() -> None:
    for sender in ("anon/9-9", "shadow/0"):
        with pytest.raises(NeedsError, match=f"no update of {sender} can be read"):
            project(make_view()).index_of(Party(sender))


def test_refuses_views_with_updates_of_shadow_devices_alone() -> None:
    evidence = fit_user_evidence(
        {-1: load_known_updates(make_view(), make_knowledge(), "shadow", -1)}
    )
    alone = make_view(clients=0)
    with pytest.raises(NeedsError, match="updates of the target"):
        project_updates(alone, DEVICES, evidence)


def test_default_layers_need_an_update() -> None:
    with pytest.raises(NeedsError, match="updates of the target"):
        read_default_layers(View(frozenset({SERVER}), ()))


def random_vectors(updates: int, dims: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(updates, dims, generator=Seed(seed).generator())


def projections(vectors, rounds) -> torch.Tensor:
    found = fit_update_pca(vectors, rounds)
    return found.project(vectors, rounds, fit_round_means(vectors, rounds))


def test_three_updates_of_a_round_have_two_directions() -> None:
    # Scaled to length 1 they are the axes, whose mean is (1, 1, 1) / 3: what is left of each
    # has the squared length 1 - 1/3, and nothing along (1, 1, 1).
    vectors = torch.diag(torch.tensor([5.0, 1.0, 0.1]))
    one_round = torch.zeros(3, dtype=torch.long)
    found = fit_update_pca(vectors, one_round)
    assert found.directions.shape == (3, 2)
    assert (found.directions.T @ found.directions).allclose(torch.eye(2).double(), atol=1e-9)
    assert found.directions.sum(0).tolist() == pytest.approx([0, 0], abs=1e-9)
    lengths = projections(vectors, one_round).norm(dim=1)
    assert lengths.tolist() == pytest.approx([(2 / 3) ** 0.5] * 3)


def test_subtracts_the_mean_of_the_nearest_round() -> None:
    means = RoundMeans(torch.tensor([0, 4]), torch.tensor([[0.5, 0.5], [0.0, -1.0]]))
    left = means.subtract_from(
        torch.tensor([[1.0, 0.0]]).expand(3, 2), torch.tensor([1, 3, 99])
    )
    assert left.tolist() == [[0.5, -0.5], [1, 1], [1, 1]]


def test_gram_matrix_and_covariance_give_the_same_projections() -> None:
    # 6 updates of 4 numbers, and the same padded with zeros.
    vectors, rounds = random_vectors(6, 4), torch.tensor([0, 0, 0, 1, 1, 1])
    few, many = (
        projections(vectors, rounds),
        projections(torch.cat([vectors, vectors * 0], 1), rounds),
    )
    assert (few @ few.T).allclose(many @ many.T, atol=1e-9)


@given(st.permutations(range(8)), st.integers(0, 99), st.sampled_from([3, 20]))
def test_projections_do_not_depend_on_the_order(order, seed, dims) -> None:
    vectors, rounds = random_vectors(8, dims, seed), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    shuffled = projections(vectors[order], rounds[order])
    expected = projections(vectors, rounds)[order]
    assert (shuffled @ shuffled.T).allclose(expected @ expected.T, atol=1e-8)


@given(st.floats(1e-6, 1e6), st.integers(0, 99))
def test_projections_do_not_depend_on_the_length(length, seed) -> None:
    vectors, rounds = random_vectors(5, 9, seed), torch.zeros(5, dtype=torch.long)
    scale = torch.tensor([[length], [1], [1], [1], [1]])
    one, other = projections(vectors, rounds), projections(vectors * scale, rounds)
    assert (one @ one.T).allclose(other @ other.T, atol=1e-5)


@pytest.mark.parametrize("dims", [2, 50])
@pytest.mark.parametrize("height", [0.0, 0.3])
def test_equal_updates_have_equal_projections(dims, height) -> None:
    vectors = torch.full((7, dims), height)
    assert not projections(vectors, torch.tensor([0, 0, 0, 1, 1, 1, 2])).any()


def test_keeps_the_directions_of_largest_variance() -> None:
    # Two at opposite ends of the first axis, and two close to each other.
    vectors = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0.1], [0, 1.0, -0.1]])
    with patch.object(update_pca, "MAX_DIRECTIONS", 1):
        found = fit_update_pca(vectors, torch.zeros(4, dtype=torch.long))
    assert found.directions.abs().squeeze(1).tolist() == pytest.approx([1, 0, 0], abs=1e-6)


def test_fits_to_a_subset_of_many_updates_and_projects_all() -> None:
    # Both all updates and half of them span two axes of five.
    vectors = torch.cat([random_vectors(1200, 2), torch.zeros(1200, 3)], 1)
    rounds = torch.arange(1200) // 100
    expected = projections(vectors, rounds)
    with patch.object(update_pca, "MAX_UPDATES", 600):
        found = fit_update_pca(vectors, rounds)
    means = fit_round_means(vectors, rounds)
    projected = found.project(vectors, rounds, means)
    assert projected.shape == (1200, 2)
    assert (projected @ projected.T).allclose(expected @ expected.T, atol=1e-9)
    alone = torch.cat(
        [found.project(vectors[[n]], rounds[[n]], means) for n in (0, 511, 512, 1199)]
    )
    assert alone.allclose(projected[[0, 511, 512, 1199]], atol=1e-9)
