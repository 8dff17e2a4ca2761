"""Where sums alone are read, attacks either read sums or are refused about single clients."""

from typing import Any

import pytest
import torch

from overheard.core.attack import Attack, missing_needs
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Aggregate, Broadcast, Message
from overheard.core.needs import DISTILLED, SUMS, TRAINED_MODEL, UPDATES
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.transcript import Transcript
from overheard.plans.registries import ATTACKS

READ = (SUMS.description, UPDATES.description, TRAINED_MODEL.description, DISTILLED.description)


@pytest.mark.parametrize("attack", ATTACKS.plugins().values(), ids=lambda one: str(one.name))
def test_attacks_that_read_no_sums_are_refused_with_what_they_miss(
    attack: type[Attack[Any]],
) -> None:
    weights, server = {"w": torch.zeros(2)}, frozenset({SERVER})
    view = Transcript(
        [
            Message(0, SERVER, server | {client(0), client(1)}, Broadcast(weights)),
            Message(0, COHORT, server, Aggregate(weights, frozenset({client(0), client(1)}))),
        ]
    ).seen_by(SERVER)
    missing = missing_needs(attack(), view, client(0), Knowledge(classes=2))
    refused = any(one.startswith(READ) for one in missing)
    assert refused == (SUMS not in attack.needs)
