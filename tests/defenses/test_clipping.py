"""Clipping keeps the direction and all tensors of an update."""

import pytest
import torch

from overheard.core.defense import DefenseContext
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses._clipping import clip_update

MOMENT = DefenseContext(2, client(3), Seed(11))


def test_scales_all_tensors_by_one_factor() -> None:
    # The norm of (2, 3) and (6) together is 7; clipped to 3.5, each is halved.
    got = clip_update({"a": torch.tensor([2.0, 3.0]), "b": torch.tensor(6.0)}, 3.5, MOMENT)
    assert got["a"].tolist() == [1.0, 1.5]
    assert got["b"].item() == 3.0


def test_refuses_nonfinite_numbers_and_names_client_and_round() -> None:
    with pytest.raises(ValueError, match="client/3 in round 2"):
        clip_update({"a": torch.tensor([float("nan")])}, 1.0, MOMENT)
