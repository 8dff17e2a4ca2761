import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.linkage.count_sketch import make_count_sketch

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
