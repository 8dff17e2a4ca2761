"""Similar inputs get similar features, for tables, images and texts."""

import pytest
import torch
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.defenses.mm_aug import FEATURES, compute_features


def distances(features: Tensor) -> Tensor:
    return (features[:, None] - features).norm(dim=2)


def test_keeps_all_distances_up_to_64_dimensions() -> None:
    # Seven numbers span seven directions or fewer: turning loses nothing.
    inputs = torch.randn(30, 7, generator=Seed(0).generator())
    standard = (inputs - inputs.mean(0)) / inputs.std(0, correction=0)
    features = compute_features(inputs, None)
    assert features.shape == (30, 7)
    assert torch.allclose(distances(features), distances(standard), atol=1e-4)


def test_columns_of_a_table_have_equal_weight_in_any_unit() -> None:
    inputs = torch.randn(30, 3, generator=Seed(0).generator())
    scaled = inputs * torch.tensor([1000.0, 1.0, 0.01]) + 5
    one, other = (distances(compute_features(each, None)) for each in (inputs, scaled))
    assert torch.allclose(one, other, atol=1e-3)


def test_a_constant_column_has_no_effect() -> None:
    inputs = torch.randn(30, 3, generator=Seed(0).generator())
    constant = torch.cat([inputs, torch.full((30, 1), 2.0)], 1)
    one, other = (distances(compute_features(each, None)) for each in (inputs, constant))
    assert torch.allclose(one, other, atol=1e-4)


def test_pixels_of_images_keep_their_scale() -> None:
    inputs = torch.randn(20, 1, 2, 3, generator=Seed(0).generator())
    inputs[:, 0, 0, 0] *= 100
    features = compute_features(inputs, None)
    assert torch.allclose(distances(features), distances(inputs.flatten(1)), atol=1e-3)


def test_keeps_the_leading_directions() -> None:
    # Three strong directions among 300 weak ones hold nearly all of every distance.
    generator = Seed(0).generator()
    strong = torch.randn(200, 3, generator=generator) @ torch.randn(3, 300, generator=generator)
    weak = 0.01 * torch.randn(200, 300, generator=generator)
    inputs = (strong + weak)[:, None, None]  # (examples, 1, 1, 300)
    features = compute_features(inputs, None)
    assert features.shape == (200, FEATURES)
    assert torch.allclose(distances(features), distances(inputs.flatten(1)), atol=0.3)


def test_texts_with_the_same_words_are_close_in_any_order_and_padding() -> None:
    texts = torch.tensor([[5, 6, 7, 0], [7, 5, 6, 0], [0, 6, 7, 5], [8, 9, 3, 0], [9, 8, 4, 0]])
    apart = distances(compute_features(texts, None))
    assert float(apart[:3, :3].max()) < 1e-3
    assert float(apart[3, 4]) < float(apart[3, 0])
    # No word in common: a right angle between two of length 1.
    assert float(apart[0, 3]) == pytest.approx(2**0.5, abs=1e-3)


def test_empty_texts_have_features_too() -> None:
    texts = torch.tensor([[0, 0], [2, 3], [4, 3]])
    assert compute_features(texts, None)[0].tolist() == pytest.approx([0.0] * 3)
    assert bool(compute_features(torch.zeros(3, 2, dtype=torch.int64), None).isfinite().all())


def halves(inputs: Tensor) -> Tensor:
    return inputs[:, :1] / 2


def words(inputs: Tensor) -> str:
    return "no features"


def too_few(inputs: Tensor) -> Tensor:
    return inputs[:1]


def endless(inputs: Tensor) -> Tensor:
    return inputs / 0


NO_FUNCTION = 3


def test_returns_the_features_of_a_custom_extractor() -> None:
    inputs = torch.ones(4, 2)
    assert compute_features(inputs, f"{__name__}:halves").tolist() == [[0.5]] * 4


@pytest.mark.parametrize("name", ["words", "too_few", "endless"])
def test_refuses_an_extractor_without_valid_features_by_name(name: str) -> None:
    with pytest.raises(
        PlanError, match=f"{name} must return a matrix of finite numbers with one row for each"
    ):
        compute_features(torch.ones(4, 2), f"{__name__}:{name}")


@pytest.mark.parametrize("reference", ["no_such_package:f", f"{__name__}:no_such_function"])
def test_refuses_a_missing_extractor_by_name(reference: str) -> None:
    with pytest.raises(PlanError, match=r"extractor: .*(cannot be imported|has no function)"):
        compute_features(torch.ones(4, 2), reference)


def test_refuses_an_extractor_that_is_no_function() -> None:
    with pytest.raises(PlanError, match="is a int; it must be a function"):
        compute_features(torch.ones(4, 2), f"{__name__}:NO_FUNCTION")


def test_does_not_use_the_global_generator() -> None:
    inputs = torch.randn(30, 100, generator=Seed(0).generator())
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = compute_features(inputs, None)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(one, compute_features(inputs, None))
