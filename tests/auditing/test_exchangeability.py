"""Members and non-members count as exchangeable only if they were separated at random."""

from dataclasses import replace

import torch

from overheard.auditing.exchangeability import are_exchangeable, record_exchange
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.data.datasets.digits import Digits
from overheard.data.partition.data_partition import DataPartition
from overheard.data.reading.folder import data_folder
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid

DATASET = Digits().load(data_folder(None))


def partition_of(members: list[int], others: list[int]) -> DataPartition:
    """Return a partition with candidate records of these labels; one client has `members`."""
    labels = torch.tensor([*members, *others])
    records = Examples(torch.zeros(len(labels), 1), labels)
    rows = {client(0): tuple(range(len(members)))}
    return DataPartition(records, (), records, records, {}, candidates=records, members=rows)


def test_randomly_separated_records_are_exchangeable() -> None:
    assert are_exchangeable(Iid(), DATASET, partition_of([0, 1] * 20, [0, 1] * 100))


def test_a_split_with_different_clients_is_not_exchangeable() -> None:
    assert not are_exchangeable(
        Dirichlet(alpha=0.5), DATASET, partition_of([0, 1] * 20, [0, 1] * 100)
    )


def test_canaries_are_exchangeable_under_every_split() -> None:
    canaries = replace(partition_of([0, 1] * 40, [0] * 20 + [1] * 180), canary_odds=0.5)
    assert are_exchangeable(Dirichlet(alpha=0.5), DATASET, canaries)


def test_label_frequencies_that_differ_are_not_exchangeable() -> None:
    # 40 of each of two labels against 20 and 180: chi-squared is above 40.
    assert not are_exchangeable(Iid(), DATASET, partition_of([0, 1] * 40, [0] * 20 + [1] * 180))


def test_no_candidate_records_are_not_exchangeable() -> None:
    pool = partition_of([0], [1]).pool
    assert not are_exchangeable(Iid(), DATASET, DataPartition(pool, (), pool, pool, {}))


def test_several_examples_per_record_are_not_exchangeable() -> None:
    several = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert not are_exchangeable(Iid(), several, partition_of([0, 1] * 20, [0, 1] * 100))


def test_canaries_might_have_had_any_owner() -> None:
    canaries = replace(partition_of([0, 1], [0, 1]), canary_odds=0.5)
    assert record_exchange(ByUser(), DATASET, canaries) == "all"


def test_records_might_have_had_the_owner_of_another_of_their_label() -> None:
    assert record_exchange(Dirichlet(), DATASET, partition_of([0], [1])) == "same label"


def test_records_of_users_and_pieces_of_records_belong_together() -> None:
    assert record_exchange(ByUser(), DATASET, partition_of([0], [1])) == "none"
    pieces = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert record_exchange(Iid(), pieces, partition_of([0], [1])) == "none"
