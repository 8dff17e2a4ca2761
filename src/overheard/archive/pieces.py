"""The content of a safetensors file, as pieces that lie in memory already."""

import json
import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from overheard.archive.weights import flaw_of, stored

Pieces = tuple[bytes | memoryview, ...]
"""What stands in a file, one after the other."""

ALIGNED = 8
"""Bytes to whose multiple the header is filled up."""

_KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}
"""How the format calls floats, in the order in which it puts their tensors."""


def pieces(weights: Mapping[str, Tensor]) -> Pieces:
    """What `stored` gives, to the byte, without a copy of any tensor that lies in memory.

    Of a model of a million parameters that is 4 MB, and `stored` copies them three times. The
    pieces are the tensors' own memory: write them before anything changes there.

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
    header, end, held = {}, 0, list[memoryview]()
    for name in names:
        tensor = weights[name].detach().cpu().contiguous()
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _KINDS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
        if tensor.numel():
            held.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    return (len(text).to_bytes(8, "little"), text, *held)
