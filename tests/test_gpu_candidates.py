"""Kernels that only `make gpu-check` uses compute what the product computes."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

from overheard.core.task import Task
from overheard.learning.models.conv_net import ConvNet

pytest.importorskip("triton")

from overheard.learning.engines import convolution_products

ENGINES = "overheard.learning.engines"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks" / "gpu"))
    found = import_module("kernels")
    if hasattr(import_module(f"{ENGINES}.instance_norm_kernels")._normalise.fn, "__wrapped__"):
        pytest.skip("Triton reads no functions whose types are checked")
    return found


@pytest.mark.parametrize(("channels", "outs", "splits"), [(3, 5, 1), (17, 18, 2)])
def test_candidates_convolve_as_the_product_does(
    kernels: ModuleType, channels: int, outs: int, splits: int
) -> None:
    # Neither the sides of the maps nor their channels are multiples of a tile.
    generator = torch.Generator().manual_seed(0)
    maps = torch.randn(1, 2, 4, 5, channels, generator=generator)
    weights = torch.randn(1, outs, channels, 2, 3, generator=generator)
    bias = torch.randn(1, outs, generator=generator)
    leaves = [one.double().requires_grad_() for one in (maps, weights, bias)]
    expected = convolution_products.convolve(*leaves, (1, 0))
    above = torch.randn(expected.shape, generator=generator)
    _, gradient, _ = torch.autograd.grad((expected * above).sum(), leaves)
    tile = kernels.Tile(16, 16, 16)
    own = weights.permute(0, 1, 3, 4, 2).contiguous()
    found = kernels.convolve(maps, own, bias, (1, 0), "ieee", tile)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-4)
    sums = kernels.kernel_gradients(maps, above, (2, 3), (1, 0), "tf32x3", tile, splits)
    torch.testing.assert_close(
        sums.permute(0, 1, 4, 2, 3), gradient.float(), rtol=1e-4, atol=1e-4
    )


def test_steps_with_candidates_have_the_gradients_of_the_product(kernels: ModuleType) -> None:
    task = Task((1, 4, 5), ("a", "b"))
    model = ConvNet(blocks=2, width=3).build(task)
    step = kernels._Step(model, task.shape, "float32", clients=1, batch=1)
    row = kernels.compare_steps(step, ["ieee"])
    assert row.keys() == {
        "product",
        "first block merged",
        "convolutions, ieee",
        "gain enough",
    }
    for what in ("first block merged", "convolutions, ieee"):
        assert row[what]["difference"] < 1e-5, row[what]
