"""The way back, written out, gives autograd's gradients."""

import pytest
import torch
from torch import nn

from overheard.learning.chain import Chain
from overheard.learning.vmapped import Vmapped


@pytest.mark.parametrize("bend", [nn.ReLU(inplace=True), nn.LeakyReLU(0.1), nn.Tanh()])
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_and_losses_are_those_of_vmap(bend, bias):
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
    for way in (Chain(model), Vmapped(model)):
        gradients = [torch.empty_like(p) for p in parameters]
        with torch.no_grad():
            losses = way.fill(gradients, parameters, inputs, labels, weights)
        found.append([*gradients, losses])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)
