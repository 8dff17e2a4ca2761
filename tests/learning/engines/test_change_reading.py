"""Changes are read client by client, in memory of their own."""

import pytest
import torch

from overheard.learning.engines.change_reading import StackedChanges
from tests.pretended_device import DeviceTensor, pretended_device


@pytest.mark.parametrize("is_one_start", [True, False])
def test_changes_are_divided_among_clients(is_one_start: bool) -> None:
    stack = [torch.arange(30.0).view(5, 2, 3), torch.arange(5.0)]
    one, other = [torch.ones(2, 3), torch.tensor(2.0)], [torch.zeros(2, 3), torch.tensor(1.0)]
    starts = [one, one if is_one_start else other] * 2 + [one]
    losses = torch.arange(5.0)
    here = StackedChanges(stack, starts, losses).read()
    expected = [
        [part[client] - begin for part, begin in zip(stack, start, strict=True)]
        for client, start in enumerate(starts)
    ]
    with pretended_device() as device:
        moved = {id(start): [part.to(device) for part in start] for start in (one, other)}
        there = StackedChanges(
            [part.to(device) for part in stack],
            [moved[id(start)] for start in starts],
            losses.to(device),
        ).read()
    for changes, read in (here, there):
        assert read == losses.tolist()
        assert not any(isinstance(part, DeviceTensor) for own in changes for part in own)
        torch.testing.assert_close(changes, expected, rtol=0, atol=0)
        for part in (part for own in changes for part in own):
            assert part.untyped_storage().nbytes() == part.numel() * part.element_size()
