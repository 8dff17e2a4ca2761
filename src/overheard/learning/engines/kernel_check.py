"""A check that the kernels compute on this device what torch computes."""

from functools import cache

import torch
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.engines.stacked_convolutions import StackedConvolutions
from overheard.learning.engines.stacked_networks import StackedNetworks
from overheard.learning.engines.triton_support import refuse_kernels
from overheard.learning.engines.vmapped_networks import VmappedNetworks
from overheard.learning.initialization import fresh_model
from overheard.learning.precision import computing

TOLERANCE = 1e-3
"""Largest relative difference of gradients in float32. A wrong kernel differs by far more."""

SIDE = 31
"""Pixels of an image a side: odd in both blocks, and as many as the largest tile holds."""


@cache
def kernels_agree(device: torch.device) -> bool:
    """Return whether a step of a tiny network by the kernels is that of torch on this device.

    It is computed once in a process. If it fails, the kernels are refused, with a warning.
    """
    try:
        difference = _difference(device)
    except Exception as error:  # Whatever fails here would fail in training.
        reason = str(error).strip().splitlines() or [""]
        refuse_kernels(device, f"{type(error).__name__}: {reason[0][:200]}")
        return False
    if not difference < TOLERANCE:  # also where it is no number
        refuse_kernels(device, f"gradients of a test differ by {difference:.1g} of their size")
        return False
    return True


def _difference(device: torch.device) -> float:
    """Return the relative difference of the gradients of a network with two blocks."""
    model = fresh_model(_tiny_network, Seed(0)).to(device)
    generator = Seed(0).generator()
    stack = [
        torch.randn(2, *one.shape, generator=generator).to(device) for one in model.parameters()
    ]
    images = torch.randn(2, 3, 1, SIDE, SIDE, generator=generator).to(device)
    with computing("float32"), torch.autocast(device.type, enabled=False):
        expected, found = (
            _gradient(networks, stack, images)
            for networks in (VmappedNetworks(model), StackedConvolutions(model))
        )
    return float((found - expected).norm() / expected.norm())


def _tiny_network() -> nn.Module:
    layers: list[nn.Module] = []
    for channels in (1, 8):
        layers += [
            nn.Conv2d(channels, 8, 3, padding=1),
            nn.GroupNorm(8, 8),
            nn.ReLU(),
            nn.AvgPool2d(2),
        ]
    pixels = (SIDE // 4) ** 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * pixels, 3))


def _gradient(networks: StackedNetworks, stack: list[Tensor], images: Tensor) -> Tensor:
    gradients = [torch.empty_like(one) for one in stack]
    labels = torch.zeros(images.shape[:2], dtype=torch.int64, device=images.device)
    weights = torch.ones(images.shape[:2], device=images.device)
    networks.write_gradients(gradients, stack, images, labels, weights)
    return torch.cat([one.flatten() for one in gradients])
