"""The frozen tensors of a network, from a file in the format safetensors."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from overheard.core.errors import PlanError
from overheard.learning.custom_networks.tensor_names import plain_name
from overheard.learning.sent_tensors import sent_tensors


def load_frozen(network: nn.Module, path: Path) -> None:
    """Copy the tensors of a file into those of a network that are not sent, in place.

    Names are compared without what adapters and wrappers add to them. Tensors that are sent
    stay as they are, such as a last layer that is trained.

    Raises:
        PlanError: if the file cannot be read, has no frozen parameter of the network, or one of
            another shape or with NaN or infinity.

    """
    try:
        stored = {plain_name(name): one for name, one in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise PlanError(f"model: base: {path} cannot be read: {error}") from error
    sent = sent_tensors(network)
    frozen = {name: one for name, one in network.named_parameters() if name not in sent}
    common = {name: plain for name in frozen if (plain := _stored_name(name, stored))}
    if not common:
        raise PlanError(
            f"model: base: {path} has none of the frozen parameters of the network, such as "
            f"{next(iter(frozen), 'none: all are trained')}: name the file of its base"
        )
    with torch.no_grad():
        for name, stored_name in common.items():
            weight = stored[stored_name]
            if weight.shape != frozen[name].shape:
                raise PlanError(
                    f"model: base: {stored_name} has the shape {tuple(weight.shape)} in "
                    f"{path}, and {tuple(frozen[name].shape)} in the network: name the base "
                    "of the run"
                )
            if not bool(weight.isfinite().all()):
                raise PlanError(f"model: base: {path} has NaN or infinity in {stored_name}")
            frozen[name].copy_(weight)


def _stored_name(name: str, stored: dict[str, torch.Tensor]) -> str:
    """Return the name in a file of a parameter of the network; "" = it is not there.

    Wrappers of PEFT stand before the names of the base, and its file may have no name of the
    model before those of its layers.
    """
    plain = plain_name(name)
    parts = plain.split(".")
    endings = (".".join(parts[start:]) for start in range(min(len(parts) - 1, 4)))
    return next((one for one in endings if one in stored), "")
