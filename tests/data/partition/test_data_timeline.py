"""Data that change over the rounds."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import (
    AuxiliarySize,
    SplitSettings,
    draw_partition,
)
from overheard.data.partition.data_timeline import DataTimeline, draw_timeline
from overheard.data.partition.redrawn_partitions import redraw_label_counts
from overheard.data.partition.schedule import DataShift, Schedule
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity

CLASSES = 4


TASK = Task((1,), ("a", "b", "c", "d"))


# The single input of an example is its own number, from 1; labels 0, 1, 2, 3, 0, ...
POOL = Examples(torch.arange(1.0, 801.0)[:, None], torch.arange(800) % CLASSES)


# Eight users of 100 examples each, 25 of each label.
USERS = torch.arange(800) // 100


def timeline_of(
    *shifts: DataShift,
    rounds: int = 5,
    refresh_every: int | None = None,
    first: tuple[torch.Tensor, ...] = (torch.arange(20), torch.arange(100, 120)),
    users: torch.Tensor | None = None,
    pool: Examples = POOL,
    task: Task = TASK,
    seed: int = 0,
) -> DataTimeline:
    free = torch.ones(len(pool), dtype=torch.bool)
    free[790:] = False
    schedule = Schedule(rounds, refresh_every, shifts)
    return draw_timeline(
        Dataset(pool, pool, task, users), users, first, free, schedule, Seed(seed)
    )


def counts(timeline: DataTimeline, place: int) -> list[list[int]]:
    """Return the label counts of a client, by round."""
    return [
        timeline.pool.labels[rows[place]].bincount(minlength=CLASSES).tolist()
        for rows in timeline.rows
    ]


def changes(timeline: DataTimeline, place: int) -> list[int]:
    """Return how many rows of a client are new in each round but the first."""
    rows = [set(at[place].tolist()) for at in timeline.rows]
    return [len(now - before) for before, now in pairwise(rows)]


def test_weights_are_relative_to_what_the_client_holds() -> None:
    # The client has label counts 8, 4, 4, 4. Times 1, 3, 1, 0: 8, 12, 4, 0, in all 24. Scaled
    # to 20: 6.67, 10, 3.33 and 0. The first is rounded up.
    first_rows = torch.tensor([*range(16), 16, 20, 24, 28])
    timeline = timeline_of(
        DataShift(0, 2, weights=(1.0, 3.0, 1.0, 0.0)),
        first=(first_rows, torch.arange(100, 120)),
    )
    assert counts(timeline, 0) == [[8, 4, 4, 4]] * 2 + [[7, 10, 3, 0]] * 3
    assert counts(timeline, 1) == [[5, 5, 5, 5]] * 5
    assert timeline.shifts == {client(0): (2,)}


def test_a_second_shift_starts_from_the_shares_after_the_first() -> None:
    # 5, 5, 5, 5 -> times 3, 1, 1, 1 of 30 for 20: 10, 3.33, 3.33, 3.33 -> 10, 4, 3, 3; then
    # times 0, 1, 1, 1 of 10 for 20: 8, 6, 6.
    timeline = timeline_of(
        DataShift(0, 1, weights=(3.0, 1.0, 1.0, 1.0)),
        DataShift(0, 3, weights=(0.0, 1.0, 1.0, 1.0)),
    )
    assert counts(timeline, 0)[1:4] == [[10, 4, 3, 3]] * 2 + [[0, 8, 6, 6]]
    assert timeline.shifts == {client(0): (1, 3)}


def test_a_drift_is_even_and_ends_with_all_examples_new() -> None:
    # From 5 of each to 20 of label 0 in 4 rounds: each part of 5 has one or two of each label.
    timeline = timeline_of(DataShift(0, 1, shares=(1.0, 0.0, 0.0, 0.0), over=4), rounds=6)
    firsts = [count[0] for count in counts(timeline, 0)]
    assert firsts[0] == 5
    # Sorted by label, each part takes every fourth row: 2, 1, 1, 1 of the first five.
    assert firsts[1:] == [5 - 2 + 5, 5 - 3 + 10, 5 - 4 + 15, 20, 20]
    assert changes(timeline, 0) == [5, 5, 5, 5, 0]
    assert not set(timeline.rows[0][0].tolist()) & set(timeline.rows[4][0].tolist())
    assert timeline.shifts == {client(0): (1,)}


def test_a_drift_replaces_examples_in_random_order() -> None:
    replaced = [
        set(range(20))
        - set(timeline_of(DataShift(0, 1, over=2), seed=seed).rows[1][0].tolist())
        for seed in (0, 0, 1)
    ]
    assert replaced[0] == replaced[1]
    assert replaced[0] != replaced[2]


def test_a_drift_longer_than_the_examples_ends_when_all_are_new() -> None:
    timeline = timeline_of(
        DataShift(0, 1, over=3), first=(torch.arange(2), torch.arange(100, 120))
    )
    assert changes(timeline, 0) == [1, 1, 0, 0]


def test_a_drifting_client_is_not_refreshed_but_others_are() -> None:
    timeline = timeline_of(
        DataShift(0, 1, weights=(1.0, 1.0, 1.0, 0.0), over=3), refresh_every=2, rounds=5
    )
    # 20 in parts of 7, 7 and 6 in the rounds 1 to 3, a refresh in 4.
    assert changes(timeline, 0) == [7, 7, 6, 20]
    assert changes(timeline, 1) == [0, 20, 0, 20]
    # 20 without the last: 6.67 each, and the first two rounded up.
    assert counts(timeline, 0)[3:] == [[7, 7, 6, 0]] * 2


def test_shares_that_do_not_change_are_no_shift() -> None:
    assert timeline_of(DataShift(0, 1, shares=(0.25, 0.25, 0.25, 0.25))).shifts == {}


def test_distorted_inputs_get_new_rows_and_keep_their_labels() -> None:
    timeline = timeline_of(DataShift(1, 2, distortion=0.5), refresh_every=3)
    assert counts(timeline, 1) == [[5, 5, 5, 5]] * 5
    assert timeline.shifts == {client(1): (2,)}
    numbers = [timeline.pool.inputs[rows[1]].flatten() for rows in timeline.rows]
    # Undistorted inputs are whole numbers; distorted ones are not.
    assert all(bool((at == at.round()).all()) for at in numbers[:2])
    assert all(bool((at != at.round()).any()) for at in numbers[2:])
    # A refresh in round 3 brings other examples, distorted in the same way.
    assert changes(timeline, 1) == [0, 20, 20, 0]
    plain = torch.cat([timeline.rows[number][0] for number in range(5)])
    assert bool((timeline.pool.inputs[plain] == timeline.pool.inputs[plain].round()).all())


def test_the_distortion_of_a_client_is_constant_and_differs_between_clients() -> None:
    # All inputs are equal, so that there is no noise and only the scale factor remains.
    flat = Examples(torch.ones(800, 1), POOL.labels)
    timeline = timeline_of(
        DataShift(0, 1, distortion=0.5),
        DataShift(1, 1, distortion=0.5),
        refresh_every=2,
        pool=flat,
    )
    factors = [timeline.pool.inputs[timeline.rows[number][place]].unique() for place in (0, 1)
               for number in (1, 2, 4)]  # fmt: skip
    assert all(len(factor) == 1 for factor in factors)
    assert factors[0].equal(factors[1])
    assert factors[1].equal(factors[2])
    assert factors[3].equal(factors[5])
    assert not factors[0].equal(factors[3])
    assert float(factors[0]) != 1


def test_a_later_shift_keeps_the_distortion_unless_it_sets_one() -> None:
    timeline = timeline_of(
        DataShift(0, 1, distortion=0.5),
        DataShift(0, 2, weights=(1.0, 1.0, 1.0, 0.0)),
        DataShift(0, 3),
        DataShift(0, 4, distortion=0.0),
    )
    inputs = [timeline.pool.inputs[rows[0]] for rows in timeline.rows]
    is_plain = [bool((at == at.round()).all()) for at in inputs]
    assert is_plain == [True, False, False, False, True]
    assert timeline.shifts == {client(0): (1, 2, 4)}


def test_distorted_examples_were_never_held_before() -> None:
    # The distortion is so small that rounding recovers which examples were copied.
    timeline = timeline_of(DataShift(0, 1, distortion=1e-6), refresh_every=1)
    rows = torch.cat([at[place] for at in timeline.rows for place in (0, 1)])
    assert len(rows.unique()) == len(rows) == 200
    of = timeline.pool.inputs[rows].flatten().round()
    assert len(of.unique()) == 200
    assert float(of.max()) <= 790


def of_user(timeline: DataTimeline, place: int, number: int) -> list[int]:
    return (timeline.pool.inputs[timeline.rows[number][place]].long().flatten() - 1).div(
        100, rounding_mode="floor"
    ).unique().tolist()  # fmt: skip


def test_a_new_user_has_been_no_client_before() -> None:
    timeline = timeline_of(
        DataShift(0, 1, new_user=True),
        DataShift(1, 1, new_user=True),
        DataShift(0, 3, new_user=True),
        users=USERS,
        refresh_every=2,
    )
    one, other = ([of_user(timeline, place, number) for number in range(5)] for place in (0, 1))
    assert one[0] == [0]
    assert other[0] == [1]
    assert one[1] == one[2] != one[3] == one[4]
    assert other[1] == other[4]
    users = [one[1][0], one[3][0], other[1][0]]
    assert len({0, 1, *users}) == 5
    # The user has 25 of each label, so 20 examples have 5 of each.
    assert counts(timeline, 0)[1] == [5, 5, 5, 5]
    # Label counts stay the same, but the new user is a shift.
    assert timeline.shifts == {client(0): (1, 3), client(1): (1,)}


def test_a_new_user_may_have_given_shares() -> None:
    timeline = timeline_of(
        DataShift(0, 1, shares=(1.0, 0.0, 0.0, 0.0), new_user=True), users=USERS
    )
    assert counts(timeline, 0)[1] == [20, 0, 0, 0]
    assert of_user(timeline, 0, 1) != [0]


TEXTS = Examples(torch.ones(800, 5, dtype=torch.int64), POOL.labels)


@pytest.mark.parametrize(
    ("shift", "options", "message"),
    [
        (DataShift(2, 1), {}, "client 2 shifts, but there are 2 clients"),
        (DataShift(0, 1, shares=(0.5, 0.5)), {}, "2 shares, but the task has 4"),
        (DataShift(0, 1, weights=(1.0,)), {}, "1 weights, but the task has 4"),
        (DataShift(0, 1, new_user=True), {}, "does not keep users"),
        (
            DataShift(0, 1, weights=(1.0, 0.0, 0.0, 0.0)),
            {"first": (torch.tensor([1, 2, 3]), torch.tensor([4]))},
            "the weights of all labels",
        ),
        (
            DataShift(0, 1, shares=(1.0, 0.0, 0.0, 0.0)),
            {"first": (torch.arange(500),)},
            "are left",
        ),
        (
            DataShift(0, 1, distortion=0.5),
            {"pool": TEXTS, "task": Task((5,), TASK.class_names, vocabulary=9)},
            "only for images and columns of numbers",
        ),
        (
            DataShift(0, 1, new_user=True),
            {
                "users": USERS,
                "first": tuple(torch.arange(n, n + 95) for n in range(0, 700, 100)),
            },
            "no client has been",
        ),
    ],
)
def test_refuses_shifts_that_do_not_fit_the_data(
    shift: DataShift, options: dict[str, object], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        timeline_of(shift, **options)


# Shifts are built inside the test, as run-time type checks draw random numbers.
shift_settings = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(1, 4),
        st.none(),
        st.none() | st.sampled_from([(1.0, 3.0, 1.0, 1.0), (1.0, 0.0, 0.0, 1.0)]),
        st.integers(1, 3),
        st.none() | st.sampled_from((0.0, 0.3, 1.0)),
    ),
    max_size=2,
    unique_by=lambda shift: shift[0],
)


@given(
    shift_settings,
    st.sampled_from((None, 2, 3)),
    st.integers(0, 99),
)
def test_sizes_are_constant_rows_disjoint_and_the_control_equal_until_the_shift(
    settings_: list[Any], refresh_every: int | None, seed: int
) -> None:
    shifts = [DataShift(*one) for one in settings_]
    schedule = Schedule(7, refresh_every, tuple(shifts))
    timeline, control = (
        timeline_of(*one.shifts, rounds=7, refresh_every=refresh_every, seed=seed)
        for one in (schedule, schedule.control("exact"))
    )
    owners: dict[int, int] = {}
    for rows in timeline.rows:
        for place, rows_of_client in enumerate(rows):
            assert len(rows_of_client.unique()) == len(rows_of_client) == 20
            assert all(
                owners.setdefault(row, place) == place for row in rows_of_client.tolist()
            )
    assert control.shifts == {}
    assert all(counts(control, place) == [[5, 5, 5, 5]] * 7 for place in (0, 1))
    for number in range(min((shift.round for shift in shifts), default=7)):
        for one, other in zip(timeline.rows[number], control.rows[number], strict=True):
            assert torch.equal(timeline.pool.inputs[one], control.pool.inputs[other])
    for place in (0, 1):
        assert changes(timeline, place) == changes(control, place)
    expected = {client(one.client): (one.round,) for one in shifts if not one.is_refresh}
    assert timeline.shifts == expected


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
