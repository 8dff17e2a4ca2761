"""Splits by label, and data that are split again."""

import math

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import draw_partition
from overheard.data.partition.first_round import SplitSettings, split_by_sizes
from overheard.data.partition.label_split import LabelSplit
from overheard.data.partition.redrawn_partitions import redraw_label_counts
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import Schedule, checked_weights
from overheard.data.partition.split_again import split_again
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
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


TRAIN = Examples(torch.arange(400.0)[:, None], LABELS)


DATA = Dataset(train=TRAIN, test=TRAIN, task=Task((1,), ("a", "b", "c", "d")))


FREE = torch.ones(400, dtype=torch.bool)


SIZES = torch.tensor([20, 30, 25])


FIRST_SPLITS = [Iid(0.8), Dirichlet(), Quantity(2), Faces()]


def split_first(split: Split, seed: Seed, sizes: torch.Tensor = SIZES):
    return split_by_sizes(DATA, SplitSettings(split, (1, 400)), sizes, FREE, seed)


def again(split: Split, fixed, seed: Seed, sizes: torch.Tensor = SIZES):
    return split_again(DATA, SplitSettings(split, (1, 400)), sizes, FREE, fixed, seed)


def label_counts(rows: torch.Tensor) -> list[int]:
    return LABELS[rows].bincount(minlength=4).tolist()


@pytest.mark.parametrize("split", FIRST_SPLITS)
def test_nothing_kept_is_the_split_itself(split: Split) -> None:
    one, other = again(split, {}, Seed(3)), split_first(split, Seed(3))
    assert all(map(torch.equal, one, other))


def test_labels_dealt_in_turn_go_to_the_others() -> None:
    # Two clients of two labels use up one list of the four labels, so the second gets those
    # that the first did not get; a third starts a new list, with any of them.
    fixed = {0: split_first(Quantity(2), Seed(0))[0]}
    own = {label for label, count in enumerate(label_counts(fixed[0])) if count}
    third = set[int]()
    for number in range(20):
        rows = again(Quantity(2), fixed, Seed(number))
        second = {label for label, count in enumerate(label_counts(rows[1])) if count}
        assert second == {0, 1, 2, 3} - own
        third |= {label for label, count in enumerate(label_counts(rows[2])) if count}
    assert third == {0, 1, 2, 3}


def test_what_two_clients_keep_is_matched_together() -> None:
    rows = split_first(Quantity(3), Seed(4))
    fixed = {0: rows[0], 2: rows[2]}
    seconds = {tuple(label_counts(again(Quantity(3), fixed, Seed(n))[1])) for n in range(20)}
    # The list of labels that the first client opened has one left: the second always gets it.
    (left,) = [label for label, count in enumerate(label_counts(rows[0])) if not count]
    assert len(seconds) > 1
    assert all(counts[left] for counts in seconds)


def test_draws_given_what_is_kept_are_as_likely_as_the_first_ones() -> None:
    # If client 0 keeps its examples, client 1's true count of label 0 is one of those drawn
    # anew: its rank among them is uniform. The mean of 40 ranks is within 0.18 of a half with
    # probability 0.9999.
    ranks = []
    for number in range(40):
        truth = split_first(Quantity(3), Seed(number))
        mine = label_counts(truth[1])[0]
        drawn = [
            label_counts(again(Quantity(3), {0: truth[0]}, Seed(1000 + 9 * number + n))[1])[0]
            for n in range(9)
        ]
        below, ties = sum(one < mine for one in drawn), sum(one == mine for one in drawn)
        ranks.append((below + ties / 2) / 9)
    assert abs(sum(ranks) / 40 - 0.5) < 0.18


def test_a_pool_that_is_used_up_leaves_the_others_its_rest() -> None:
    sizes = torch.tensor([150, 250])
    first, second = split_first(Dirichlet(0.5), Seed(0), sizes)
    for number in range(3):
        rows = again(Dirichlet(0.5), {0: first}, Seed(number), sizes)
        assert label_counts(rows[1]) == label_counts(second)


def test_all_may_keep_their_examples() -> None:
    rows = split_first(Dirichlet(), Seed(0))
    assert all(map(torch.equal, rows, again(Dirichlet(), dict(enumerate(rows)), Seed(1))))


def test_labels_that_no_split_gives_are_refused() -> None:
    # A client of two labels cannot hold three.
    fixed = {0: torch.tensor([0, 1, 2, *range(4, 72, 4)])}
    with pytest.raises(PlanError, match="no split gives"):
        again(Quantity(2), fixed, Seed(0))


@pytest.mark.parametrize("numbers", [(), (0.0, 0.0), (2.0, -1.0), (math.nan, 1.0), (math.inf,)])
def test_refuses_invalid_weights_and_says_where_they_are(numbers: tuple[float, ...]) -> None:
    with pytest.raises(PlanError, match="row 7 must be"):
        checked_weights(numbers, "row 7")
