"""Targets share virtual clients where they were heard in the same rounds."""

import torch

from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.view import View
from overheard.simulation.heard_alike import HeardAlike, heard_alike

WEIGHTS = {"w": torch.zeros(1)}
CLIENTS = tuple(client(number) for number in range(3))
ALL, HERE = frozenset(CLIENTS), frozenset({SERVER})


def view(answering: dict[int, tuple[int, ...]]) -> View:
    said = []
    for number, places in answering.items():
        said.append(Message(number, SERVER, ALL, Broadcast(WEIGHTS)))
        said += [Message(number, CLIENTS[place], HERE, Update(WEIGHTS)) for place in places]
    return View(HERE, tuple(said))


def test_groups_by_the_rounds_in_which_each_was_heard():
    groups = heard_alike(view({0: (0, 1), 1: (0, 1, 2), 2: (2,)}), CLIENTS, 10)
    assert groups == (
        HeardAlike(CLIENTS[:2], (0, 1), None),
        HeardAlike(CLIENTS[2:], (1, 2), None),
    )
    assert [group.clients for group in groups] == [1, 1]


def test_takes_the_first_rounds_of_each():
    groups = heard_alike(view({0: (0,), 1: (0, 1), 2: (0, 1)}), CLIENTS[:2], 1)
    assert [group.rounds for group in groups] == [(0,), (1,)]


def test_of_the_cohort_it_tells_how_many_clients_are_summed():
    said = (
        Message(0, SERVER, ALL, Broadcast(WEIGHTS)),
        Message(0, SERVER, HERE, Aggregate(WEIGHTS, ALL)),
    )
    (group,) = heard_alike(View(HERE, said), [COHORT], 10)
    assert (group.members, group.clients) == (3, 3)
