"""Where tensors live, chosen once."""

from typing import Literal

import torch

from overheard.core.errors import PlanError

DeviceName = Literal["auto", "cpu", "cuda"]


def choose_device(name: DeviceName) -> torch.device:
    """Give the device of this name; "auto" takes a GPU where there is one.

    Raises:
        PlanError: if a GPU is asked for and there is none.

    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise PlanError(
            "device 'cuda' is asked for, and torch sees no GPU: choose 'auto' or 'cpu'"
        )
    return torch.device("cuda" if available and name != "cpu" else "cpu")
