"""The content of a safetensors file as buffers that share memory with its tensors."""

import json
import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from overheard.archive.tensor_files import find_flaw, to_safetensors

Buffers = tuple[bytes | memoryview, ...]
"""The content of a file, in order."""

HEADER_ALIGNMENT = 8
"""The header's length is padded to a multiple of this number of bytes."""

_DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}
"""The format's names of float types, in the order in which it stores their tensors."""


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
    order = list(_DTYPE_NAMES)
    names = sorted(weights, key=lambda name: (order.index(weights[name].dtype), name.encode()))
    header, end, buffers = {}, 0, list[memoryview]()
    for name in names:
        tensor = weights[name].detach().cpu().contiguous()
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
        if tensor.numel():
            buffers.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % HEADER_ALIGNMENT)
    return (len(text).to_bytes(8, "little"), text, *buffers)
