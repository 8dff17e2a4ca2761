"""A defense that overrides nothing changes nothing."""

from dataclasses import dataclass
from typing import ClassVar, final

import pytest
import torch
from torch import nn

from overheard.core.defense import (
    Defense,
    DefenseContext,
    LocalTraining,
    PreviousData,
    RunParameters,
)
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import SERVER
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed

CONTEXT = DefenseContext(0, SERVER, Seed(0))


@final
@dataclass(frozen=True, slots=True)
class Nothing(Defense):
    name: ClassVar[str] = "nothing"
    source: ClassVar[str] = "test"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "anybody"


def test_each_hook_returns_its_argument():
    data = Examples(torch.zeros(1, 1), torch.zeros(1, dtype=torch.long))
    training = LocalTraining(lambda: nn.Linear(1, 2), Recipe(rate=0.1, epochs=1, batch=1))
    update = Update({"w": torch.ones(2)}, 1)
    aggregate = Aggregate({"w": torch.ones(2)}, frozenset(), 1)
    assert Nothing().on_data(data, CONTEXT) is data
    assert Nothing().on_training(training) is training
    assert Nothing().on_update(update, CONTEXT) is update
    assert Nothing().on_aggregate(aggregate, CONTEXT) is aggregate


def test_has_no_formal_promise_and_no_masking_by_default():
    assert Nothing().promise(RunParameters(rounds=3, participation=1.0)) == "no formal promise"
    assert not Nothing.masks_updates


@pytest.mark.parametrize("since", [0, 4])
def test_refuses_data_replaced_before_round_1_or_in_the_future(since: int):
    former = PreviousData(Examples(torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)), since)
    with pytest.raises(ValueError, match="in round 1 to 3"):
        DefenseContext(3, SERVER, Seed(0), former)


@pytest.mark.parametrize("rate", [0.0, 1.1, float("nan")])
def test_refuses_a_sampling_rate_out_of_range(rate: float):
    with pytest.raises(ValueError, match="sampling_rate"):
        RunParameters(rounds=1, participation=1.0, sampling_rate=rate)
