"""Targets with the same rounds share virtual clients."""

import torch

from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.view import View
from overheard.simulation.target_groups import TargetGroup, group_targets

WEIGHTS = {"w": torch.zeros(1)}
CLIENTS = tuple(client(number) for number in range(3))
ALL, SERVER_ONLY = frozenset(CLIENTS), frozenset({SERVER})


def view(senders: dict[int, tuple[int, ...]]) -> View:
    messages = []
    for number, places in senders.items():
        messages.append(Message(number, SERVER, ALL, Broadcast(WEIGHTS)))
        messages += [
            Message(number, CLIENTS[place], SERVER_ONLY, Update(WEIGHTS)) for place in places
        ]
    return View(SERVER_ONLY, tuple(messages))


def test_groups_by_the_rounds_with_updates():
    groups = group_targets(view({0: (0, 1), 1: (0, 1, 2), 2: (2,)}), CLIENTS, 10)
    assert groups == (
        TargetGroup(CLIENTS[:2], (0, 1), None),
        TargetGroup(CLIENTS[2:], (1, 2), None),
    )
    assert [group.clients_per_update for group in groups] == [1, 1]


def test_uses_only_the_first_rounds():
    groups = group_targets(view({0: (0,), 1: (0, 1), 2: (0, 1)}), CLIENTS[:2], 1)
    assert [group.rounds for group in groups] == [(0,), (1,)]


def test_a_group_of_the_cohort_has_the_cohort_size():
    messages = (
        Message(0, SERVER, ALL, Broadcast(WEIGHTS)),
        Message(0, SERVER, SERVER_ONLY, Aggregate(WEIGHTS, ALL)),
    )
    (group,) = group_targets(View(SERVER_ONLY, messages), [COHORT], 10)
    assert (group.cohort_size, group.clients_per_update) == (3, 3)
