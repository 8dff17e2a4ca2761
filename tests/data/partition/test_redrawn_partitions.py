"""Partitions drawn anew keep sizes and what the attacker holds, and differ in the rest."""

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import draw_partition
from overheard.data.partition.first_round import SplitSettings
from overheard.data.partition.redrawn_partitions import redraw_label_counts
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import Schedule
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity

SEED = Seed(5)
PARTITIONS = 20
TWO_ROUNDS = Schedule(2)


def dataset(users: int | None = None) -> Dataset:
    """400 different examples of 4 labels; with users, user u holds mostly label u % 4."""
    labels = torch.arange(400) % 4
    inputs = torch.arange(400.0)[:, None]
    of_user = None
    if users is not None:
        of_user = torch.arange(400) % users
        labels = torch.where(torch.arange(400) % 5 > 0, of_user % 4, labels)
    train, test = Examples(inputs, labels), Examples(inputs + 1000, labels)
    return Dataset(train=train, test=test, task=Task((1,), ("a", "b", "c", "d")), users=of_user)


def redraw(
    split: Split, data: Dataset, seed: Seed = SEED, schedule: Schedule = TWO_ROUNDS, **settings
):
    return redraw_label_counts(
        data,
        SplitSettings(split, (20, 30)),
        PARTITIONS,
        clients=3,
        auxiliary=AuxiliarySize(per_class=5),
        schedule=schedule,
        seed=seed,
        **settings,
    )


def drawn(
    split: Split, data: Dataset, seed: Seed = SEED, schedule: Schedule = TWO_ROUNDS, **settings
):
    return draw_partition(
        data,
        SplitSettings(split, (20, 30)),
        clients=3,
        auxiliary=AuxiliarySize(per_class=5),
        test=None,
        schedule=schedule,
        seed=seed,
        **settings,
    )


def test_clients_keep_their_sizes_and_get_other_labels() -> None:
    sizes = [len(rows) for rows in drawn(Dirichlet(), dataset()).rows[0]]
    counts = redraw(Dirichlet(), dataset())
    assert [set(of_client.sum(1).tolist()) for of_client in counts[0]] == [{n} for n in sizes]
    assert len(torch.unique(counts[0][0], dim=0)) > PARTITIONS / 2


def test_the_actual_partition_is_like_the_others() -> None:
    # The count of the most frequent label, under 16 seeds, among those of other partitions.
    ranks = []
    for number in range(16):
        seed = Seed(number)
        partition = drawn(Dirichlet(), dataset(), seed)
        actual = partition.pool.labels[partition.rows[0][0]].bincount(minlength=4).max()
        others = redraw(Dirichlet(), dataset(), seed)[0][0].max(1).values
        ranks.append(float((others < actual).double().mean()))
    # The mean of 16 uniform numbers is within 0.28 of a half with probability 0.9999.
    assert abs(sum(ranks) / 16 - 0.5) < 0.28


def test_canaries_stay_with_their_clients() -> None:
    canaries = CandidateSettings(members=4, outsiders=8, canaries="labelled")
    members = drawn(Iid(), dataset(), candidates=canaries).members
    plain, with_canaries = (
        redraw(Iid(), dataset(), candidates=settings)[0] for settings in (None, canaries)
    )
    for held, one, other in zip(members.values(), plain, with_canaries, strict=True):
        assert set((other.sum(1) - one.sum(1)).tolist()) == {len(held)}


def test_users_are_exchanged_alike_under_every_seed() -> None:
    data = dataset(users=8)
    # Which user stands for which is told by its label counts: user u holds mostly label u % 4.
    exchanged: dict[tuple[int, int], set[int]] = {}
    for seed in (Seed(1), Seed(2), Seed(3)):
        partition = drawn(ByUser(), data, seed)
        for rows, counts in zip(
            partition.rows[0], redraw(ByUser(), data, seed)[0], strict=True
        ):
            user = int(data.users[rows[0]])
            for number, label in enumerate(counts.argmax(1).tolist()):
                exchanged.setdefault((user, number), set()).add(label)
    assert all(len(labels) == 1 for labels in exchanged.values())
    assert len({next(iter(labels)) for labels in exchanged.values()}) == 4


REFRESHED = Schedule(3, refresh_every=1, draws="natural")
"""Clients get new examples in each round."""


def of_equal_users() -> Dataset:
    """1,600 examples of 8 users, each with all 4 labels in random order."""
    labels = torch.randint(4, (1600,), generator=torch.Generator().manual_seed(0))
    train = Examples(torch.arange(1600.0)[:, None], labels)
    test = Examples(train.inputs + 2000, labels)
    return Dataset(
        train=train, test=test, task=Task((1,), tuple("abcd")), users=torch.arange(1600) % 8
    )


def refreshed(seed: Seed) -> tuple[torch.Tensor, torch.Tensor]:
    """Label counts of the first client by round: (rounds, labels), then of all partitions."""
    data, settings = of_equal_users(), SplitSettings(ByUser(), (10, 15))
    auxiliary = AuxiliarySize(per_class=5)
    partition = draw_partition(
        data,
        settings,
        clients=3,
        auxiliary=auxiliary,
        test=None,
        schedule=REFRESHED,
        seed=seed,
    )
    redrawn = redraw_label_counts(
        data,
        settings,
        PARTITIONS,
        clients=3,
        auxiliary=auxiliary,
        schedule=REFRESHED,
        seed=seed,
    )
    actual = [data.train.labels[rows[0]].bincount(minlength=4) for rows in partition.rows]
    return torch.stack(actual), torch.stack([in_round[0] for in_round in redrawn])


def test_exchanged_users_replace_examples_in_the_same_rounds() -> None:
    actual, redrawn = refreshed(SEED)
    assert (redrawn.sum(2) == actual.sum(1)[:, None]).all()
    # Examples are new in every round, as those of the actual clients: only some draws have the
    # same counts by chance. With the counts of one round in all of them, labels would be less
    # even than they are, and any claim of even shares would fit the truth best.
    assert int((redrawn[0] == redrawn[1]).all(1).sum()) < PARTITIONS / 2


@pytest.mark.parametrize("split", [Iid(0.8), Dirichlet(), Quantity(2), Faces()])
def test_observing_clients_keep_their_examples_and_others_do_not(split: Split) -> None:
    partition = drawn(split, dataset())
    own, other = (partition.pool.labels[partition.rows[0][number]] for number in (1, 2))
    first = redraw(split, dataset(), observing={1})[0]
    assert first[1].tolist() == [own.bincount(minlength=4).tolist()] * PARTITIONS
    assert set(first[2].sum(1).tolist()) == {len(other)}
    assert len(torch.unique(first[2], dim=0)) > 1


def test_observing_clients_keep_natural_draws_too() -> None:
    natural = Schedule(4, refresh_every=2, draws="natural", first_draws="natural")
    partition = drawn(Iid(), dataset(), schedule=natural)
    own = partition.pool.labels[partition.rows[0][0]].bincount(minlength=4)
    first = redraw(Iid(), dataset(), schedule=natural, observing={0})[0]
    assert first[0].tolist() == [own.tolist()] * PARTITIONS
    assert len(torch.unique(first[1], dim=0)) > PARTITIONS / 2


def test_users_behind_observing_clients_of_any_run_are_exchanged_for_nobody() -> None:
    data, seeds = dataset(users=8), [Seed(1), Seed(2), Seed(3)]
    users = {
        seed.value: [int(data.users[rows[0]]) for rows in drawn(ByUser(), data, seed).rows[0]]
        for seed in seeds
    }
    observing = {users[seed.value][0] for seed in seeds}
    assert len(observing) > 1
    for seed in seeds:
        counts = redraw(ByUser(), data, seed, observing={0}, all_seeds=seeds)[0]
        for user, of_client in zip(users[seed.value], counts, strict=True):
            # User u holds mostly label u % 4.
            labels = set(of_client.argmax(1).tolist())
            assert (labels == {user % 4}) == (user in observing)
