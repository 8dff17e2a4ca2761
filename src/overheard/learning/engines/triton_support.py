"""Whether kernels that are written in Triton run on a device."""

import subprocess
from functools import cache
from importlib.util import find_spec

import torch

LEAST_CAPABILITY = (8, 0)
"""The first devices whose tensor cores multiply TF32 and bfloat16."""


@cache
def runs_triton(device: torch.device) -> bool:
    """Return whether Triton is installed, and compiles kernels for this device.

    It comes with torch for CUDA on Linux. When it is first used, it compiles a file in C.
    """
    if device.type != "cuda" or torch.version.hip or find_spec("triton") is None:
        return False
    if torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return False
    import triton

    try:
        triton.runtime.driver.active.get_current_target()
    except (RuntimeError, OSError, subprocess.CalledProcessError):
        return False  # There is no C compiler, or no header of Python.
    return True
