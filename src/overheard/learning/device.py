"""The choice of the device to compute on."""

from typing import Literal

import torch

from overheard.core.errors import PlanError

DeviceName = Literal["auto", "cpu", "cuda"]


def choose_device(name: DeviceName) -> torch.device:
    """Return the device of this name; "auto" takes a GPU if there is one.

    Raises:
        PlanError: if a GPU is requested and there is none.

    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise PlanError(
            "device: 'cuda' is requested, but torch finds no GPU; choose 'auto' or 'cpu'"
        )
    return torch.device("cuda" if available and name != "cpu" else "cpu")
