"""Targets with the same rounds share virtual clients."""

import torch

from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
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
