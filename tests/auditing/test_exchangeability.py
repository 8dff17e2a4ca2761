"""Members and non-members count as exchangeable only if they were separated at random."""

from dataclasses import replace

import torch

from overheard.auditing.exchangeability import are_exchangeable
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.data.datasets.digits import Digits
from overheard.data.partition.data_partition import DataPartition
from overheard.data.reading.folder import data_folder
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
