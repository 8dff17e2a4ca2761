"""Partitioners of flwr-datasets as a split."""

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.splits.partitioner import FlwrPartitioner

LABELS = torch.arange(120) % 3
USERS = torch.arange(120) // 30
PACKAGE = "flwr_datasets.partitioner"


def assign(split: FlwrPartitioner, clients: int = 4, seed: int = 0) -> tuple[torch.Tensor, ...]:
    sizes = torch.full((clients,), 1000)
    return split.assign(LABELS, USERS, sizes, 3, Seed(seed))


def test_a_client_holds_all_of_its_partition() -> None:
    split = FlwrPartitioner(f"{PACKAGE}:PathologicalPartitioner", (
        ("partition_by", "label"), ("num_classes_per_partition", 1),
        ("class_assignment_mode", "first-deterministic"),
    ))  # fmt: skip
    rows = assign(split, clients=3)
    assert sorted(torch.cat(rows).tolist()) == list(range(120))
    # One class in each partition, as the partitioner was told.
    assert sorted(LABELS[one].unique().tolist() for one in rows) == [[0], [1], [2]]


def test_it_may_divide_by_users() -> None:
    split = FlwrPartitioner(f"{PACKAGE}:NaturalIdPartitioner", (("partition_by", "user"),))
    assert all(len(USERS[one].unique()) == 1 for one in assign(split))


def test_the_seed_of_the_run_draws_its_shares() -> None:
    split = FlwrPartitioner(f"{PACKAGE}:DirichletPartitioner", (
        ("partition_by", "label"), ("alpha", 0.5), ("min-partition-size", 1),
    ))  # fmt: skip
    counts = [
        sorted(
            tuple(LABELS[one].bincount(minlength=3).tolist()) for one in assign(split, 4, seed)
        )
        for seed in (0, 0, 1)
    ]
    assert counts[0] == counts[1]
    assert counts[0] != counts[2]


def test_says_what_the_partitioner_needs() -> None:
    split = FlwrPartitioner(f"{PACKAGE}:DirichletPartitioner", (("alpha", 0.5),))
    with pytest.raises(PlanError, match=r"partition_by.*columns row, label, user; give what"):
        assign(split)
    with pytest.raises(PlanError, match=r"4 clients but 2 partitions"):
        assign(FlwrPartitioner(arguments=(("num_partitions", 2),)))
    with pytest.raises(PlanError, match=r"object of type str, and no partitioner"):
        assign(FlwrPartitioner("tempfile:gettempdir"))
    with pytest.raises(PlanError, match=r"package.module:name"):
        FlwrPartitioner("a path/to.py")
