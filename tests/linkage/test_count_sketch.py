import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.count_sketch import MAX_UNSKETCHED, SKETCH_WIDTH, make_count_sketch

LARGE = (120, 100)
"""12,000 numbers, enough to be sketched."""


def normal(shape, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=Seed(seed).generator())


def test_small_tensors_are_not_sketched() -> None:
    tensor = normal((MAX_UNSKETCHED // 2, 2), 0)
    sketch = make_count_sketch("weight", tuple(tensor.shape))
    assert sketch.width == MAX_UNSKETCHED
    assert sketch.apply(tensor).equal(tensor.flatten())


def test_does_not_share_memory_with_its_input() -> None:
    tensor = torch.zeros(3)
    sketched = make_count_sketch("bias", (3,)).apply(tensor)
    sketched += 1
    assert tensor.equal(torch.zeros(3))


def test_sketches_have_one_width_and_float32() -> None:
    sketched = make_count_sketch("weight", LARGE).apply(normal(LARGE, 0).double())
    assert sketched.shape == (SKETCH_WIDTH,)
    assert sketched.dtype == torch.float32


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


def test_one_number_goes_to_one_bucket() -> None:
    tensor = torch.zeros(LARGE)
    tensor[7, 3] = 2.0
    sketched = make_count_sketch("weight", LARGE).apply(tensor)
    assert sketched.abs().sum() == 2
    assert sketched.count_nonzero() == 1


@pytest.mark.parametrize(("name", "shape"), [("other", LARGE), ("weight", LARGE[::-1])])
def test_draws_depend_on_name_and_shape(name, shape) -> None:
    tensor = normal(LARGE, 0)
    first = make_count_sketch("weight", LARGE).apply(tensor)
    assert first.equal(make_count_sketch("weight", LARGE).apply(tensor))
    assert not first.equal(make_count_sketch(name, shape).apply(tensor.reshape(shape)))
