"""Background examples are counted and drawn as specified, and required."""

import pytest
import torch

from overheard.core.defense import DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses._background import require_background, share_count


def chunk(size: int, label: int) -> Examples:
    """Examples of one label, whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


@pytest.mark.parametrize("background", [None, chunk(0, 1)])
def test_without_a_background_says_how_to_set_one(background: Examples | None) -> None:
    moment = DefenseContext(0, client(3), Seed(0), background=background)
    with pytest.raises(PlanError, match=r"rand_aug: .* client/3, .*; set data.background"):
        require_background(moment, "rand_aug")


def test_rounds_a_share_up_from_its_decimal_digits() -> None:
    # 0.1 * 30 is 3.0000000000000004 in floats.
    assert [share_count(30, 0.1), share_count(31, 0.1), share_count(1, 0.25)] == [3, 4, 1]
    assert [share_count(7, 0.0), share_count(0, 0.5), share_count(7, 2.0)] == [0, 0, 14]
