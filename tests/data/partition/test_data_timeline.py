"""Two clients and a pool of four labels; expected rows are worked out by hand."""

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
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.data_timeline import DataTimeline, draw_timeline
from overheard.data.partition.schedule import DataShift, Schedule

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
