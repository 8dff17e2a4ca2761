"""A defense that overrides nothing changes nothing."""

import pytest
import torch

from overheard.core.defense import (
    DefenseContext,
    PreviousData,
    RunParameters,
)
from overheard.core.examples import Examples
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed


@pytest.mark.parametrize("since", [0, 4])
def test_refuses_data_replaced_before_round_1_or_in_the_future(since: int):
    former = PreviousData(Examples(torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)), since)
    with pytest.raises(ValueError, match="in round 1 to 3"):
        DefenseContext(3, SERVER, Seed(0), former)


@pytest.mark.parametrize("rate", [0.0, 1.1, float("nan")])
def test_refuses_a_sampling_rate_out_of_range(rate: float):
    with pytest.raises(ValueError, match="sampling_rate"):
        RunParameters(rounds=1, participation=1.0, sampling_rate=rate)
