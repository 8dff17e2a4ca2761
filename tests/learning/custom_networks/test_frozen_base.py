"""The frozen tensors of a network, from a file."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from overheard.core.errors import PlanError
from overheard.learning.custom_networks.frozen_base import load_frozen


def network() -> nn.Module:
    """Return a frozen layer with the name that PEFT gives it, and a trained one."""
    found = nn.Sequential()
    found.add_module("base_model", nn.Sequential())
    found.base_model.add_module("model", nn.Sequential())
    found.base_model.model.add_module("fc", nn.Linear(2, 3).requires_grad_(False))
    found.add_module("head", nn.Linear(3, 2))
    return found


def test_frozen_tensors_are_read_and_trained_ones_stay(tmp_path: Path) -> None:
    path, one = tmp_path / "base.safetensors", network()
    head = one.head.weight.detach().clone()
    save_file({"fc.weight": torch.full((3, 2), 7.0), "head.weight": torch.zeros(2, 3)}, path)
    load_frozen(one, path)
    assert bool((one.base_model.model.fc.weight == 7).all())
    torch.testing.assert_close(one.head.weight.detach(), head)


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({"other.weight": torch.zeros(3, 2)}, "has none of the frozen parameters"),
        ({"fc.weight": torch.zeros(4, 2)}, "has the shape"),
        ({"fc.weight": torch.full((3, 2), torch.nan)}, "has NaN or infinity"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, tensors: dict[str, torch.Tensor], reason: str
) -> None:
    path = tmp_path / "base.safetensors"
    save_file(tensors, path)
    with pytest.raises(PlanError, match=reason):
        load_frozen(network(), path)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "base.safetensors"
    path.write_text("no weights")
    with pytest.raises(PlanError, match="cannot be read"):
        load_frozen(network(), path)
