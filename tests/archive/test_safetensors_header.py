"""The header that safetensors writes, and the layout that follows from shapes alone."""

import pytest
import torch
from safetensors.torch import save

from overheard.archive.safetensors_header import DTYPE_NAMES, layouts_of_shapes

SHAPES = (("b", (2,)), ("c", ()), ("a", (2, 3)), ("é", (0, 4)))


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_a_layout_is_what_safetensors_writes(dtype: torch.dtype) -> None:
    tensors = {name: torch.randn(shape).to(dtype) for name, shape in SHAPES}
    content = save(tensors)
    (layout,) = (one for one in layouts_of_shapes(SHAPES) if one.dtype == dtype)
    assert content.startswith(layout.head)
    assert len(content) == len(layout.head) + layout.numbers * dtype.itemsize
    flat = torch.frombuffer(bytearray(content), dtype=dtype, offset=len(layout.head))
    for name, shape in SHAPES:
        start = layout.starts[name]
        assert torch.equal(
            flat[start : start + tensors[name].numel()].view(shape), tensors[name]
        )


def test_layouts_of_other_shapes_or_types_begin_otherwise() -> None:
    heads = {one.head for one in layouts_of_shapes(SHAPES)}
    heads |= {one.head for one in layouts_of_shapes((*SHAPES[1:], ("b", (3,))))}
    assert len(heads) == 2 * len(DTYPE_NAMES)
