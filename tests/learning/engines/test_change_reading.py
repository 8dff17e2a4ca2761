"""Changes are read client by client, in memory of their own."""

from unittest.mock import patch

import pytest
import torch

from overheard.learning.engines import change_reading
from overheard.learning.engines.change_reading import read_changes
from tests.pretended_device import DeviceTensor, pretended_device


@pytest.mark.parametrize("bytes_at_once", [1, 60, 2**24], ids=["none", "two", "all"])
@pytest.mark.parametrize("is_one_start", [True, False])
def test_changes_are_divided_among_clients(bytes_at_once: int, is_one_start: bool) -> None:
    # Seven numbers a client, 28 bytes.
    stack = [torch.arange(30.0).view(5, 2, 3), torch.arange(5.0)]
    one, other = [torch.ones(2, 3), torch.tensor(2.0)], [torch.zeros(2, 3), torch.tensor(1.0)]
    starts = [one, one if is_one_start else other] * 2 + [one]
    here = read_changes(stack, starts)
    expected = [
        [part[client] - begin for part, begin in zip(stack, start, strict=True)]
        for client, start in enumerate(starts)
    ]
    transfer = patch.object(change_reading, "TRANSFER_BYTES", bytes_at_once)
    with pretended_device() as device, transfer:
        moved = {id(start): [part.to(device) for part in start] for start in (one, other)}
        there = read_changes(
            [part.to(device) for part in stack], [moved[id(start)] for start in starts]
        )
    for changes in (here, there):
        assert not any(isinstance(part, DeviceTensor) for own in changes for part in own)
        torch.testing.assert_close(changes, expected, rtol=0, atol=0)
        for part in (part for own in changes for part in own):
            assert part.untyped_storage().nbytes() == part.numel() * part.element_size()
