"""Images and kernels are stored in the order that suits the device, with the same numbers."""

import pytest
import torch
from torch import nn

from overheard.core.recipe import Precision, Recipe
from overheard.learning.engines.sequential import train_sequentially
from overheard.learning.engines.side_by_side import train_side_by_side
from overheard.learning.memory_layout import MemoryOrder
from overheard.learning.training_job import TrainingGroup, TrainingJob
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    IMAGES,
    SEED,
    largest_difference,
    pool_of,
    start_of,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "precision", "are_last"),
    [
        ("cpu", "float32", True),
        ("cuda", "float32", False),
        ("cuda", "tf32", True),
        ("cuda", "bf16", True),
    ],
)
def test_channels_are_last_on_a_cpu_and_for_tensor_cores(
    device: str, precision: Precision, are_last: bool
) -> None:
    assert MemoryOrder.on(torch.device(device), precision).are_channels_last == are_last


@pytest.mark.parametrize("are_last", [False, True])
def test_images_and_kernels_keep_their_numbers(are_last: bool) -> None:
    order = MemoryOrder(are_last)
    images, rows = torch.randn(3, 2, 4, 5), torch.randn(3, 7)
    assert torch.equal(order.read(order.stored(rows)), rows)
    read = order.read(order.stored(images))
    assert torch.equal(read, images)
    assert (read.stride(1) == 1) == are_last
    layer = nn.Conv2d(3, 2, 5)
    before = layer.weight.detach().clone()
    order.store_kernels(layer)
    assert torch.equal(layer.weight, before)
    assert (layer.weight.stride(1) == 1) == are_last


def test_the_order_changes_training_by_rounding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, start = pool_of(IMAGES, torch.float64), start_of(CONVOLUTIONS)
    job = TrainingJob(CONVOLUTIONS, start, pool, Recipe(0.1, 2, 4), SEED, 3, CPU)
    group = TrainingGroup(start, pool, CLIENTS, SEED)
    found = {}
    for are_last in (False, True):
        order = MemoryOrder(are_last)
        monkeypatch.setattr(MemoryOrder, "on", lambda *_, order=order: order)
        alone = train_sequentially(job, CLIENTS)
        beside = train_side_by_side(CONVOLUTIONS(), [job], [group], lanes=2)
        found[are_last] = [one.delta for one in (*alone, *beside)]
    for one, other in zip(*found.values(), strict=True):
        assert max(float(part.abs().max()) for part in one.values()) > 0
        assert largest_difference(one, other) < 1e-12
