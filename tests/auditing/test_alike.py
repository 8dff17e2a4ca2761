"""Records of clients and of nobody are taken as alike only where chance parted them."""

from dataclasses import replace

import torch

from overheard.auditing.alike import are_alike
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.data.datasets.digits import Digits
from overheard.data.partition.deal import Deal
from overheard.data.reading.folder import data_folder
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid

DATASET = Digits().load(data_folder(None))


def dealt(held: list[int], others: list[int]) -> Deal:
    """Records with these labels; the former are a client's."""
    labels = torch.tensor([*held, *others])
    asked = Examples(torch.zeros(len(labels), 1), labels)
    own = {client(0): tuple(range(len(held)))}
    return Deal(asked, (), asked, asked, {}, candidates=asked, members=own)


def test_records_that_chance_parted_are_alike() -> None:
    assert are_alike(Iid(), DATASET, dealt([0, 1] * 20, [0, 1] * 100))


def test_a_split_that_makes_clients_differ_makes_their_records_differ() -> None:
    assert not are_alike(Dirichlet(alpha=0.5), DATASET, dealt([0, 1] * 20, [0, 1] * 100))


def test_a_die_makes_canaries_alike_whatever_the_split() -> None:
    canaries = replace(dealt([0, 1] * 40, [0] * 20 + [1] * 180), canary_odds=0.5)
    assert are_alike(Dirichlet(alpha=0.5), DATASET, canaries)


def test_labels_that_clients_hold_more_often_set_their_records_apart() -> None:
    # 40 of each of two labels against 20 and 180: chi-squared is above 40.
    assert not are_alike(Iid(), DATASET, dealt([0, 1] * 40, [0] * 20 + [1] * 180))


def test_where_nothing_is_asked_nothing_is_alike() -> None:
    pool = dealt([0], [1]).pool
    assert not are_alike(Iid(), DATASET, Deal(pool, (), pool, pool, {}))


def test_examples_that_are_cut_out_of_records_are_not_alike() -> None:
    several = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert not are_alike(Iid(), several, dealt([0, 1] * 20, [0, 1] * 100))
