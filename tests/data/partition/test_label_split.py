"""Label counts drawn alone are those of the rows that a split assigns."""

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import draw_partition
from overheard.data.partition.first_round import SplitSettings
from overheard.data.partition.label_split import LabelSplit
from overheard.data.partition.redrawn_partitions import redraw_label_counts
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import Schedule
from overheard.data.partition.split_again import split_again
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity

SPLITS = [Dirichlet(), Iid(), Quantity(2)]
LABELS = torch.arange(400) % 4
SEED = Seed(3)


@pytest.mark.parametrize("split", SPLITS, ids=repr)
def test_counts_are_those_of_the_assigned_rows(split: LabelSplit) -> None:
    sizes = torch.tensor([60, 50, 70, 20])
    counts = split.draw_label_counts(LABELS, sizes, 4, SEED)
    rows = split.assign(LABELS, None, sizes, 4, SEED)
    assert counts.tolist() == [LABELS[own].bincount(minlength=4).tolist() for own in rows]


@pytest.mark.parametrize("split", SPLITS, ids=repr)
@pytest.mark.parametrize("observing", [(), (1,)])
def test_redrawn_counts_are_those_of_redrawn_rows(
    split: LabelSplit, observing: tuple[int, ...]
) -> None:
    examples = Examples(torch.arange(400.0)[:, None], LABELS)
    data = Dataset(train=examples, test=examples, task=Task((1,), ("a", "b", "c", "d")))
    settings, auxiliary = SplitSettings(split, (20, 30)), AuxiliarySize(per_class=0)
    counts = redraw_label_counts(
        data,
        settings,
        3,
        clients=3,
        auxiliary=auxiliary,
        schedule=Schedule(1),
        seed=SEED,
        observing=observing,
    )
    actual = draw_partition(
        data,
        settings,
        clients=3,
        auxiliary=auxiliary,
        test=None,
        schedule=Schedule(1),
        seed=SEED,
    ).rows[0]
    sizes = torch.tensor([len(rows) for rows in actual])
    free = torch.ones(400, dtype=torch.bool)
    for number in range(3):
        seed, kept = SEED.child("redrawn", number), {one: actual[one] for one in observing}
        rows = split_again(data, settings, sizes, free, kept, seed)
        expected = [LABELS[own].bincount(minlength=4).tolist() for own in rows]
        assert [of_client[number].tolist() for of_client in counts[0]] == expected
