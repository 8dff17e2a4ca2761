"""The content of a safetensors file as buffers that share memory with its tensors."""

import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from overheard.archive.safetensors_header import DTYPE_NAMES, write_header
from overheard.archive.tensor_files import find_flaw, to_safetensors

Buffers = tuple[bytes | memoryview, ...]
"""The content of a file, in order."""


def to_safetensors_buffers(weights: Mapping[str, Tensor]) -> Buffers:
    """Return the same bytes as `to_safetensors`, without copying tensors that are on the cpu.

    A model of a million parameters has 4 MB, which `to_safetensors` copies three times. The
    buffers share the tensors' memory: write them before the tensors change.

    Raises:
        ValueError: if any tensor has a flaw.

    """
    # The format is little-endian.
    if sys.byteorder != "little":
        return (to_safetensors(weights),)
    for name, tensor in weights.items():
        flaw = find_flaw(tensor)
        if flaw:
            raise ValueError(f"the tensor {name!r} {flaw}: only finite weights can be sent")
    order = list(DTYPE_NAMES)
    names = sorted(weights, key=lambda name: (order.index(weights[name].dtype), name.encode()))
    tensors = {name: weights[name].detach().cpu().contiguous() for name in names}
    head = write_header((name, one.dtype, tuple(one.shape)) for name, one in tensors.items())
    numbers = (
        one.reshape(-1).view(torch.uint8).numpy().data
        for one in tensors.values()
        if one.numel()
    )
    return (head, *numbers)
