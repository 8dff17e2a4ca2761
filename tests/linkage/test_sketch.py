import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.sketch import RAW, WIDTH, sketch_for

LARGE = (120, 100)
"""12,000 numbers, more than are kept as they are."""


def normal(shape, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=Seed(seed).generator())


def test_small_tensors_are_kept_as_they_are() -> None:
    tensor = normal((RAW // 2, 2), 0)
    sketch = sketch_for("weight", tuple(tensor.shape))
    assert sketch.width == RAW
    assert sketch.of(tensor).equal(tensor.flatten())


def test_what_is_kept_is_no_view_of_what_was_sent() -> None:
    tensor = torch.zeros(3)
    kept = sketch_for("bias", (3,)).of(tensor)
    kept += 1
    assert tensor.equal(torch.zeros(3))


def test_large_tensors_come_out_at_one_width_in_float32() -> None:
    told = sketch_for("weight", LARGE).of(normal(LARGE, 0).double())
    assert told.shape == (WIDTH,)
    assert told.dtype == torch.float32


@settings(max_examples=20, deadline=None)
@given(st.floats(-3, 3), st.integers(0, 5), st.integers(6, 11))
def test_is_linear(scale, one, other) -> None:
    sketch, first, second = sketch_for("w", LARGE), normal(LARGE, one), normal(LARGE, other)
    torch.testing.assert_close(
        sketch.of(first + scale * second),
        sketch.of(first) + scale * sketch.of(second),
        atol=1e-3,
        rtol=0,
    )


def test_keeps_lengths_and_right_angles_about_as_they_are() -> None:
    sketch = sketch_for("weight", LARGE)
    rows = [normal(LARGE, seed) for seed in range(20)]
    told = torch.stack([sketch.of(row) / row.norm() for row in rows])
    products = told @ told.T
    # (2 / 2048)^(1/2) = 0.031 is the standard error; the largest of 190 within four of them.
    assert float((products - torch.eye(20)).abs().max()) < 4 * 0.031


def test_one_number_goes_to_one_bucket_with_a_sign() -> None:
    tensor = torch.zeros(LARGE)
    tensor[7, 3] = 2.0
    told = sketch_for("weight", LARGE).of(tensor)
    assert told.abs().sum() == 2
    assert told.count_nonzero() == 1


@pytest.mark.parametrize(("name", "shape"), [("other", LARGE), ("weight", LARGE[::-1])])
def test_another_tensor_has_other_draws_and_the_same_one_the_same(name, shape) -> None:
    tensor = normal(LARGE, 0)
    first = sketch_for("weight", LARGE).of(tensor)
    assert first.equal(sketch_for("weight", LARGE).of(tensor))
    assert not first.equal(sketch_for(name, shape).of(tensor.reshape(shape)))
