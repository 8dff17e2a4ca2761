"""Whether kernels that are written in Triton run on a device."""

import warnings
from functools import cache
from importlib.util import find_spec

import torch

LEAST_CAPABILITY = (8, 0)
"""The first devices for which the kernels are compiled in tests."""

_refused = set[str]()
"""Kinds of devices on which a kernel has failed in this process."""


def runs_triton(device: torch.device) -> bool:
    """Return whether Triton is installed and compiles for this device, and no kernel failed.

    It comes with torch for CUDA on Linux. When it is first used, it compiles a file in C.
    """
    return device.type == "cuda" and device.type not in _refused and _compiles(device)


def refuse_kernels(device: torch.device, reason: str) -> None:
    """Use no kernel on this device from now on, and say why, once in a process."""
    if device.type not in _refused:  # "cuda" and "cuda:0" are one
        _refused.add(device.type)
        warnings.warn(
            f"the kernels for convolutions do not work on {device} ({reason}): torch's own "
            "operations compute in their place, which changes results by rounding alone but "
            "takes longer",
            RuntimeWarning,
            stacklevel=2,
        )


@cache
def _compiles(device: torch.device) -> bool:
    if torch.version.hip or torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return False
    if find_spec("triton") is None:
        refuse_kernels(device, "Triton is not installed")
        return False
    try:
        import triton
        import triton.errors

        triton.runtime.driver.active.get_current_target()
    # There is no C compiler, no header of Python, or another Triton; each has its own error.
    except Exception as error:
        refuse_kernels(device, str(error).partition("\n")[0] or type(error).__name__)
        return False
    return True
