"""What is clipped keeps its direction and all its parts."""

import pytest
import torch

from overheard.core.defense import Moment
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses._clipping import clipped

MOMENT = Moment(2, client(3), Seed(11))


def test_the_parts_are_scaled_together() -> None:
    # The norm of (2, 3) and (6) together is 7; clipped to 3.5, each is halved.
    got = clipped({"a": torch.tensor([2.0, 3.0]), "b": torch.tensor(6.0)}, 3.5, MOMENT)
    assert got["a"].tolist() == [1.0, 1.5]
    assert got["b"].item() == 3.0


def test_what_is_not_finite_is_refused_by_name_and_round() -> None:
    with pytest.raises(ValueError, match="client/3 in round 2"):
        clipped({"a": torch.tensor([float("nan")])}, 1.0, MOMENT)
