"""The pretended device refuses what a GPU refuses, by torch's own rules."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from overheard.core.seeds import Seed
from tests.pretended_device import MixedDevicesError, pretended_device

Operation = Callable[[Tensor, Tensor], object]
"""An operation on a 2 x 2 matrix of the device and one of the CPU."""

REFUSED: dict[str, Operation] = {
    "sum": lambda there, here: there + here,
    "in place": lambda there, here: there.add_(here),
    "product": lambda there, here: there @ here,
    "joined": lambda there, here: torch.cat((there, here)),
    "rows": lambda there, here: there.index_select(0, here.long()[0]),
    "gathered": lambda there, here: there.gather(0, here.long()),
    "choice": lambda there, here: torch.where(here > 0, there, there),
    "a number of the device on the CPU": lambda there, here: there.sum() * here,
    "an index of the device on the CPU": lambda there, here: here[there.long()[0]],
}

ALLOWED: dict[str, Operation] = {
    "copied": lambda there, here: there.copy_(here),
    "there": lambda there, here: there + here.to(there.device),
    "here": lambda there, here: there.cpu() + here,
    "a number of the CPU": lambda there, here: there * here.sum(),
    "an index of the CPU": lambda there, here: there[here.long()[0]],
    "a list of indices": lambda there, here: there.cumsum(0)[[1, 0]],
}


def matrices(device: torch.device | str) -> tuple[Tensor, Tensor]:
    return torch.ones(2, 2, device=device), torch.ones(2, 2)


@pytest.mark.parametrize("name", REFUSED)
def test_mixing_is_refused_as_by_fake_tensors(name: str) -> None:
    with pretended_device() as device, pytest.raises(MixedDevicesError):
        REFUSED[name](*matrices(device))
    with FakeTensorMode(), pytest.raises((RuntimeError, IndexError), match="device"):
        REFUSED[name](*matrices("cuda:0"))


@pytest.mark.parametrize("name", ALLOWED)
def test_copies_and_single_numbers_are_computed(name: str) -> None:
    with pretended_device() as device:
        computed = ALLOWED[name](*matrices(device)).cpu()
    assert computed.equal(ALLOWED[name](*matrices("cpu")))


def test_no_numbers_are_drawn_on_the_device() -> None:
    """A GPU refuses the generator of a CPU, and its own gives other numbers."""
    with pretended_device() as device:
        with pytest.raises(MixedDevicesError, match="drawn on the device"):
            torch.rand(2, generator=Seed(0).generator(), device=device)
        with pytest.raises(MixedDevicesError, match="drawn on the device"):
            torch.ones(2, device=device).bernoulli_(0.5)
        drawn = torch.rand(2, generator=Seed(0).generator()).to(device)
    assert drawn.cpu().equal(torch.rand(2, generator=Seed(0).generator()))


def test_arrays_are_made_of_copies_on_the_cpu_alone() -> None:
    with pretended_device() as device:
        there = torch.ones(2, device=device)
        with pytest.raises(TypeError, match="copied to the CPU"):
            np.asarray(there)
        assert there.cpu().numpy().tolist() == there.tolist() == [1, 1]
