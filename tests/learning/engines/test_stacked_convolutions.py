"""Stacked convolutions, with their kernels in Triton's interpreter."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.task import Task
from overheard.learning.engines import convolution_products, stacked
from overheard.learning.engines.vmapped_networks import VmappedNetworks
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.learning.models.shift_conv import ShiftConv
from overheard.learning.train import train_cohort
from tests.learning.cases import (
    CLIENTS,
    IMAGES,
    NORMED,
    RECIPES,
    SEED,
    pool_of,
    start_of,
)

pytest.importorskip("triton")

from triton.runtime.errors import OutOfResources

from overheard.learning.engines import (
    instance_norm_kernels,
    kernel_check,
    stacked_convolutions,
    triton_support,
)
from overheard.learning.engines.kernel_check import kernels_agree
from overheard.learning.engines.stacked_convolutions import (
    StackedConvolutions,
    normalise_by_torch,
)

if hasattr(instance_norm_kernels._normalise.fn, "__wrapped__"):
    pytest.skip("Triton reads no functions whose types are checked", allow_module_level=True)

NETWORK_KINDS = StackedConvolutions, VmappedNetworks

GREY = Task((1, 7, 6), ("a", "b", "c"))


def _drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).to(dtype)


@pytest.mark.parametrize(
    ("channels", "kernel", "padding", "has_bias"),
    [(3, (3, 3), (1, 1), True), (8, (2, 3), (1, 0), False), (1, (5, 5), (0, 0), True)],
)
def test_convolutions_and_their_gradients_are_those_of_torch(
    channels, kernel, padding, has_bias
):
    given = [_drawn(2, 3, 6, 5, channels), _drawn(2, 4, channels, *kernel, seed=1)]
    given += [_drawn(2, 4, seed=2)] if has_bias else []

    def by_torch(maps, kernels, bias, padding):
        rows = zip(maps, kernels, [None] * 2 if bias is None else bias, strict=True)
        return torch.stack(
            [
                functional.conv2d(own.permute(0, 3, 1, 2), of_client, offset, padding=padding)
                for own, of_client, offset in rows
            ]
        ).permute(0, 1, 3, 4, 2)

    found = []
    for run in (convolution_products.convolve, by_torch):
        leaves = [one.double().requires_grad_() for one in given]
        outputs = run(*leaves[:2], leaves[2] if has_bias else None, padding)
        above = _drawn(*outputs.shape, dtype=torch.float64, seed=3)
        found.append([outputs, *torch.autograd.grad((outputs * above).sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("height", "width", "channels"), [(7, 7, 5), (4, 6, 16), (5, 3, 9), (2, 3, 17)]
)
def test_kernels_normalise_and_pool_as_torch_does(height, width, channels):
    # Last rows and columns of odd maps count in the norm, not in the pool.
    given = [
        _drawn(2, 2, height, width, channels),
        _drawn(2, channels, seed=1),
        _drawn(2, channels, seed=2),
    ]
    found = []
    for run, dtype in (
        (instance_norm_kernels.normalise_and_pool, torch.float32),
        (normalise_by_torch, torch.float64),
    ):
        leaves = [one.to(dtype).requires_grad_() for one in given]
        outputs = run(*leaves, 1e-5)
        above = _drawn(*outputs.shape, dtype=dtype, seed=3)
        found.append([outputs, *torch.autograd.grad((outputs * above).sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-5)


def test_a_channel_that_diverges_is_not_hidden():
    maps, ones = _drawn(1, 2, 4, 4, 8), torch.ones(1, 8)
    maps[0, 1, 0, 0, 3] = torch.nan
    outputs = instance_norm_kernels.normalise_and_pool(maps, ones, ones, 1e-5)
    assert outputs[0, 1, ..., 3].isnan().all()
    assert outputs.isnan().sum() == 4


@pytest.mark.nightly
def test_kernels_compile_for_gpus_and_fit_into_their_registers(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.learning.engines.compile_kernels"],
        env=os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    assert len(rows) == 80
    # What does not fit into registers is written to memory. 100 kB are shared on the least GPU.
    assert max(row["spilled"] for row in rows) <= 16
    assert max(row["shared"] for row in rows) <= 2048


def test_norms_by_torch_are_those_of_a_group_norm():
    maps, weight, bias = _drawn(2, 2, 5, 4, 3), _drawn(2, 3, seed=1), _drawn(2, 3, seed=2)
    expected = torch.stack(
        [
            functional.avg_pool2d(
                functional.group_norm(own.permute(0, 3, 1, 2), 3, *of_client).relu(), 2
            ).permute(0, 2, 3, 1)
            for own, *of_client in zip(maps, weight, bias, strict=True)
        ]
    )
    found = normalise_by_torch(maps, weight, bias, 1e-5)
    torch.testing.assert_close(found, expected)


def _plain_ends() -> nn.Sequential:
    """A network without biases, whose kernels are no squares."""
    return nn.Sequential(
        nn.Conv2d(2, 4, (2, 3), padding=(0, 1), bias=False),
        nn.GroupNorm(4, 4, eps=0.1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 3, bias=False),
    )


NETWORKS = {
    "conv_net": (partial(ConvNet(blocks=2, width=17).build, GREY), (1, 7, 6)),
    "without biases": (_plain_ends, (2, 8, 4)),
}


def _both(model: nn.Sequential, shape, labels, aim, dtype):
    """Return losses and gradients of the stacked convolutions and of vmap in float64."""
    assert StackedConvolutions.supports(model)
    parameters = [
        _drawn(3, *one.shape, dtype=torch.float64, seed=place) / max(one[0].numel(), 2) ** 0.5
        for place, one in enumerate(model.parameters())
    ]
    inputs, weights = _drawn(3, 2, *shape, dtype=torch.float64), torch.rand(3, 2).double()
    weights[1, 1] = 0  # pads a batch
    found = []
    for networks, kind in (
        (StackedConvolutions(model, *aim), dtype),
        (VmappedNetworks(model.double(), *aim), torch.float64),
    ):
        stack = [one.to(kind) for one in parameters]
        gradients = [torch.full_like(one, torch.nan) for one in stack]
        with torch.no_grad():
            losses = networks.write_gradients(
                gradients, stack, inputs.to(kind), labels, weights.to(kind)
            )
        found.append([losses, *gradients])
    return zip(*found, strict=True)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "aim", [(0.0, "cross_entropy"), (0.3, "cross_entropy"), (0.0, "squared_error")], ids=str
)
def test_gradients_and_losses_equal_those_of_vmap_in_float64(name, aim):
    build, shape = NETWORKS[name]
    labels = torch.tensor([[0, 1], [2, 0], [1, 1]])
    for one, other in _both(build(), shape, labels, aim, torch.float64):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_and_losses_of_the_kernels_are_those_of_float32(name):
    build, shape = NETWORKS[name]
    labels = torch.tensor([[0, 1], [2, 0], [1, 1]])
    aim = (0.0, "cross_entropy")
    for one, other in _both(build(), shape, labels, aim, torch.float32):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-6)


def test_training_equals_that_of_one_client_after_another(monkeypatch):
    # Clients of unequal sizes have batches that are padded, and end at different steps.
    start, pool = start_of(NORMED), pool_of(IMAGES, torch.float64)
    monkeypatch.setattr(stacked, "runs_triton", lambda device: True)
    monkeypatch.setattr(kernel_check, "kernels_agree", lambda device: True)
    assert isinstance(stacked.build_stacked_networks(NORMED()), StackedConvolutions)
    recipe = RECIPES["momentum"]
    both = (
        train_cohort(NORMED, start, pool, CLIENTS, recipe, seed=SEED, round=3, engine=engine)
        for engine in ("stacked", "sequential")
    )
    for one, other in zip(*both, strict=True):
        assert one.loss == pytest.approx(other.loss, abs=1e-12)
        for name, change in one.delta.items():
            torch.testing.assert_close(change, other.delta[name], rtol=0, atol=1e-11)


def test_float_labels_and_binary_cross_entropy_have_the_losses_of_vmap():
    build, shape = NETWORKS["conv_net"]
    labels = torch.tensor([[[0.0, 1, 1]] * 2] * 3)
    aim = (0.0, "binary_cross_entropy")
    for one, other in _both(build(), shape, labels, aim, torch.float64):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


def test_products_in_bfloat16_keep_two_digits_of_float32():
    build, shape = NETWORKS["conv_net"]
    model = build()
    stack = [torch.stack([one.detach()] * 2) for one in model.parameters()]
    inputs = _drawn(2, 3, *shape)
    exact, rounded = (
        StackedConvolutions(model, precision=precision).logits(stack, inputs)
        for precision in ("float32", "bf16")
    )
    assert rounded.dtype == torch.float32
    error = (rounded - exact).norm() / exact.norm()
    assert 1e-4 < error < 3e-2


def _gradients(networks, model: nn.Module, shape, clip: float | None = None) -> list[Tensor]:
    stack = [torch.stack([one.detach()] * 2) for one in model.parameters()]
    gradients = [torch.empty_like(one) for one in stack]
    labels, weights = torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3)
    images = _drawn(2, 3, *shape)
    networks.write_gradients(gradients, stack, images, labels, weights, clip=clip)
    return gradients


def test_clipped_gradients_are_those_of_vmap():
    model = NETWORKS["conv_net"][0]()
    both = (_gradients(build(model), model, (1, 7, 6), 0.1) for build in NETWORK_KINDS)
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other)


def test_a_kernel_that_cannot_be_compiled_is_replaced_with_one_warning(monkeypatch):
    def fail(*given):
        raise OutOfResources(300_000, 232_448, "shared memory")

    monkeypatch.setattr(stacked_convolutions, "normalise_and_pool", fail)
    monkeypatch.setattr(triton_support, "_refused", set[str]())
    model = NETWORKS["conv_net"][0]()
    stacked, vmapped = (build(model) for build in NETWORK_KINDS)
    with pytest.warns(RuntimeWarning, match="OutOfResources") as warned:
        found = [_gradients(stacked, model, (1, 7, 6)) for _ in range(2)]
    assert len(warned) == 1
    expected = _gradients(vmapped, model, (1, 7, 6))
    for gradients in found:
        for one, other in zip(gradients, expected, strict=True):
            assert torch.equal(one, other)


def test_kernels_are_refused_with_a_reason_unless_they_agree_with_torch(monkeypatch):
    device = torch.device("cpu")
    check = kernels_agree.__wrapped__
    monkeypatch.setattr(kernel_check, "SIDE", 7)
    monkeypatch.setattr(triton_support, "_refused", set[str]())
    assert check(device)

    def pool_wrongly(*given):
        return normalise_by_torch(*given) * 1.01

    monkeypatch.setattr(stacked_convolutions, "normalise_and_pool", pool_wrongly)
    with pytest.warns(RuntimeWarning, match="gradients of a test differ by 0.01 of their size"):
        assert not check(device)

    def fail(*given):
        raise RuntimeError("no kernel image is available\nfor this device")

    monkeypatch.setattr(stacked_convolutions, "normalise_and_pool", fail)
    monkeypatch.setattr(triton_support, "_refused", set[str]())
    with pytest.warns(RuntimeWarning, match=r"RuntimeError: no kernel image is available\)"):
        assert not check(device)


def test_other_networks_are_not_supported():
    convolution, norm, relu = nn.Conv2d(1, 2, 3), nn.GroupNorm(2, 2), nn.ReLU()
    pool, flatten, linear = nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 2)
    end = (norm, relu, pool, flatten, linear)
    assert StackedConvolutions.supports(nn.Sequential(convolution, *end))
    for layers in (
        (flatten, linear),  # no block
        (convolution, norm, relu, pool),  # no logits
        (convolution, relu, pool, flatten, linear),
        (convolution, norm, nn.LeakyReLU(), pool, flatten, linear),
        (convolution, norm, relu, nn.MaxPool2d(2), flatten, linear),
        (convolution, norm, relu, nn.AvgPool2d(3), flatten, linear),
        (convolution, norm, relu, nn.AvgPool2d(2, ceil_mode=True), flatten, linear),
        (convolution, nn.GroupNorm(1, 2), relu, pool, flatten, linear),
        (convolution, nn.BatchNorm2d(2), relu, pool, flatten, linear),
        (convolution, nn.GroupNorm(2, 2, affine=False), relu, pool, flatten, linear),
        (convolution, norm, relu, pool, nn.Flatten(2), linear),
        (nn.Conv2d(1, 2, 3, stride=2), *end),
        (nn.Conv2d(1, 2, 3, dilation=2), *end),
        (nn.Conv2d(2, 2, 3, groups=2), *end),
        (nn.Conv2d(1, 2, 3, padding="same"), *end),
        (nn.Conv2d(1, 2, 1, padding=1), *end),
        (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), *end),
        (nn.Conv2d(1, 2, 3).requires_grad_(False), *end),
        (convolution, *end[:3], nn.Conv2d(2, 2, 3), nn.GroupNorm(2, 2), *end[1:]),
    ):
        assert not StackedConvolutions.supports(nn.Sequential(*layers))
    hooked = nn.Sequential(convolution, *end)
    hooked.register_forward_hook(lambda network, given, logits: -logits)
    assert not StackedConvolutions.supports(hooked)
    first, second = nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3)
    block = (second, nn.GroupNorm(2, 2), nn.ReLU(), nn.AvgPool2d(2))
    assert StackedConvolutions.supports(nn.Sequential(first, *end[:3], *block, *end[3:]))
    second.weight = first.weight
    assert not StackedConvolutions.supports(nn.Sequential(first, *end[:3], *block, *end[3:]))
    for build in (DecafConv2().build, LdiaConv().build, ShiftConv().build):
        assert not StackedConvolutions.supports(build(Task((1, 16, 16), ("a", "b"))))
