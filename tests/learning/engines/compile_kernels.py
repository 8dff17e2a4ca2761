"""Compiles the kernels for GPUs, which needs none, and prints what they take of a GPU as JSON.

python -m tests.learning.engines.compile_kernels       every tile, for every GPU
python -m tests.learning.engines.compile_kernels 28    maps of 28 x 28 pixels alone
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from overheard.learning.engines import instance_norm_kernels as kernels

CAPABILITIES = (80, 90)
TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
CHANNELS = (128, 20)
MAPS = {"maps", "above", "outputs", "changes"}
"""Arguments with the dtype of the maps."""


def compiled(kernel, capability: int, dtype: torch.dtype, side: int, channels: int):
    """Return bytes of shared memory, registers, and bytes that spill from them, of a thread."""
    maps = torch.empty(1, 1, side, side, channels, dtype=dtype, device="meta")
    _, settings = kernels._launch(maps)
    options = {name: settings.pop(name) for name in ("num_warps", "enable_fp_fusion")}
    types, attributes = {}, {}
    for place, name in enumerate(kernel.arg_names):
        if name in settings:
            types[name] = "constexpr"
        elif name == "epsilon":
            types[name] = "fp32"
        elif name in ("images", "height", "width", "channels"):
            types[name] = "i32"
            if name == "channels" and channels % 16 == 0:
                attributes[(place,)] = [["tt.divisibility", 16]]
        else:
            types[name] = TYPES[dtype] if name in MAPS else "*fp32"
            attributes[(place,)] = [["tt.divisibility", 16]]
    constants = {(kernel.arg_names.index(name),): value for name, value in settings.items()}
    source = ASTSource(kernel, types, constants, attributes)
    made = triton.compile(source, GPUTarget("cuda", capability, 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        usage = subprocess.run(
            [TOOLS / "cuobjdump", "--dump-resource-usage", file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert found
    return {
        "shared": made.metadata.shared,
        "registers": int(found[1]),
        "spilled": int(found[2]),
    }


def main(sides: list[int]) -> None:
    rows = [
        {"kernel": kernel.fn.__name__, "capability": capability, "type": str(dtype)}
        | {"side": side, "channels": channels}
        | compiled(kernel, capability, dtype, side, channels)
        for kernel in (kernels._normalise, kernels._pass_back)
        for capability in CAPABILITIES
        for dtype in TYPES
        for side in sides
        for channels in CHANNELS
    ]
    sys.stdout.write(json.dumps(rows))


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]] or [32, 28, 15, 7, 4])
