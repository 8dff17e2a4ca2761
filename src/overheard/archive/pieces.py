"""The content of a safetensors file as buffers that share memory with its tensors."""

import json
import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from overheard.archive.weights import flaw_of, stored

Pieces = tuple[bytes | memoryview, ...]
"""The content of a file, in order."""

ALIGNED = 8
"""The header's length is padded to a multiple of this number of bytes."""

_KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}
"""The format's names of float types, in the order in which it stores their tensors."""


def pieces(weights: Mapping[str, Tensor]) -> Pieces:
    """Return the same bytes as `stored`, without copying tensors that are on the cpu.

    A model of a million parameters has 4 MB, which `stored` copies three times. The buffers
    share the tensors' memory: write them before the tensors change.

    Raises:
        ValueError: if any tensor has a flaw.

    """
    # The format is little-endian.
    if sys.byteorder != "little":
        return (stored(weights),)
    for name, tensor in weights.items():
        flaw = flaw_of(tensor)
        if flaw:
            raise ValueError(f"the tensor {name!r} {flaw}: only finite weights can be sent")
    order = list(_KINDS)
    names = sorted(weights, key=lambda name: (order.index(weights[name].dtype), name.encode()))
    header, end, buffers = {}, 0, list[memoryview]()
    for name in names:
        tensor = weights[name].detach().cpu().contiguous()
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _KINDS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
        if tensor.numel():
            buffers.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    return (len(text).to_bytes(8, "little"), text, *buffers)
