"""Two clients over a pool of four labels; who holds what is worked out by hand."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.exchanges import Holdings, holdings
from overheard.data.partition.schedule import DataShift, Schedule

CLASSES = 4
TASK = Task((1,), ("a", "b", "c", "d"))
# The single input of an example is its own number, from 1; labels 0, 1, 2, 3, 0, ...
POOL = Examples(torch.arange(1.0, 801.0)[:, None], torch.arange(800) % CLASSES)
# Eight users of 100 examples each, 25 of each label.
USERS = torch.arange(800) // 100


def held_by(
    *shifts: DataShift,
    rounds: int = 5,
    refresh_every: int | None = None,
    first: tuple[torch.Tensor, ...] = (torch.arange(20), torch.arange(100, 120)),
    users: torch.Tensor | None = None,
    pool: Examples = POOL,
    task: Task = TASK,
    seed: int = 0,
) -> Holdings:
    free = torch.ones(len(pool), dtype=torch.bool)
    free[790:] = False
    schedule = Schedule(rounds, refresh_every, shifts)
    return holdings(Dataset(pool, pool, task, users), users, first, free, schedule, Seed(seed))


def counts(held: Holdings, who: int) -> list[list[int]]:
    """Of each label, round by round."""
    return [
        held.pool.labels[rows[who]].bincount(minlength=CLASSES).tolist() for rows in held.rows
    ]


def changes(held: Holdings, who: int) -> list[int]:
    """How many rows are new in each round but the first."""
    rows = [set(at[who].tolist()) for at in held.rows]
    return [len(now - before) for before, now in pairwise(rows)]


def test_weights_are_relative_to_what_the_client_holds() -> None:
    # Of 20: 8, 4, 4, 4 of the labels. Times 1, 3, 1, 0: 8, 12, 4, 0, together 24; so of 20
    # there are 6.67, 10, 3.33 and 0: the first is rounded up.
    uneven = torch.tensor([*range(16), 16, 20, 24, 28])
    held = held_by(
        DataShift(0, 2, weights=(1.0, 3.0, 1.0, 0.0)), first=(uneven, torch.arange(100, 120))
    )
    assert counts(held, 0) == [[8, 4, 4, 4]] * 2 + [[7, 10, 3, 0]] * 3
    assert counts(held, 1) == [[5, 5, 5, 5]] * 5
    assert held.shifts == {client(0): (2,)}


def test_even_labels_at_3_to_2_make_60_to_40() -> None:
    held = held_by(DataShift(0, 1, weights=(3.0, 2.0, 3.0, 2.0)))
    assert counts(held, 0)[1] == [6, 4, 6, 4]


def test_a_second_shift_takes_what_the_first_left() -> None:
    # 5, 5, 5, 5 -> times 3, 1, 1, 1 of 30 for 20: 10, 3.33, 3.33, 3.33 -> 10, 4, 3, 3; then
    # times 0, 1, 1, 1 of 10 for 20: 8, 6, 6.
    held = held_by(
        DataShift(0, 1, weights=(3.0, 1.0, 1.0, 1.0)),
        DataShift(0, 3, weights=(0.0, 1.0, 1.0, 1.0)),
    )
    assert counts(held, 0)[1:4] == [[10, 4, 3, 3]] * 2 + [[0, 8, 6, 6]]
    assert held.shifts == {client(0): (1, 3)}


def test_a_drift_moves_evenly_and_ends_all_new() -> None:
    # 5 of each to 20 of the first in 4 rounds: each part of 5 takes one or two of each label.
    held = held_by(DataShift(0, 1, shares=(1.0, 0.0, 0.0, 0.0), over=4), rounds=6)
    firsts = [count[0] for count in counts(held, 0)]
    assert firsts[0] == 5
    # Sorted by label, parts take every fourth: of the first five 2, 1, 1, 1.
    assert firsts[1:] == [5 - 2 + 5, 5 - 3 + 10, 5 - 4 + 15, 20, 20]
    assert changes(held, 0) == [5, 5, 5, 5, 0]
    assert not set(held.rows[0][0].tolist()) & set(held.rows[4][0].tolist())
    assert held.shifts == {client(0): (1,)}


def test_the_control_of_a_drift_exchanges_as_much_and_keeps_the_composition() -> None:
    held = held_by(DataShift(0, 1, over=3), rounds=5)
    assert counts(held, 0) == [[5, 5, 5, 5]] * 5
    assert changes(held, 0) == [7, 7, 6, 0]
    assert held.shifts == {}


def test_which_examples_a_drift_takes_first_is_left_to_chance() -> None:
    gone = [
        set(range(20)) - set(held_by(DataShift(0, 1, over=2), seed=seed).rows[1][0].tolist())
        for seed in (0, 0, 1)
    ]
    assert gone[0] == gone[1]
    assert gone[0] != gone[2]


def test_a_drift_of_more_rounds_than_examples_is_done_when_all_are_new() -> None:
    held = held_by(DataShift(0, 1, over=3), first=(torch.arange(2), torch.arange(100, 120)))
    assert changes(held, 0) == [1, 1, 0, 0]


def test_no_refresh_comes_into_a_drift_and_the_others_have_theirs() -> None:
    held = held_by(
        DataShift(0, 1, weights=(1.0, 1.0, 1.0, 0.0), over=3), refresh_every=2, rounds=5
    )
    # 20 in parts of 7, 7 and 6 in the rounds 1 to 3, a refresh in 4.
    assert changes(held, 0) == [7, 7, 6, 20]
    assert changes(held, 1) == [0, 20, 0, 20]
    # 20 without the last: 6.67 each, and the first two rounded up.
    assert counts(held, 0)[3:] == [[7, 7, 6, 0]] * 2


def test_shares_that_the_client_holds_already_are_no_shift() -> None:
    assert held_by(DataShift(0, 1, shares=(0.25, 0.25, 0.25, 0.25))).shifts == {}


def test_distorted_inputs_are_rows_of_their_own_and_labels_stay() -> None:
    held = held_by(DataShift(1, 2, distortion=0.5), refresh_every=3)
    assert counts(held, 1) == [[5, 5, 5, 5]] * 5
    assert held.shifts == {client(1): (2,)}
    numbers = [held.pool.inputs[rows[1]].flatten() for rows in held.rows]
    # As they are, inputs are whole numbers; distorted ones are not.
    assert all(bool((at == at.round()).all()) for at in numbers[:2])
    assert all(bool((at != at.round()).any()) for at in numbers[2:])
    # A refresh in round 3 brings others, seen the same way.
    assert changes(held, 1) == [0, 20, 20, 0]
    plain = torch.cat([held.rows[number][0] for number in range(5)])
    assert bool((held.pool.inputs[plain] == held.pool.inputs[plain].round()).all())


def test_the_instrument_of_a_client_stays_the_same_and_differs_between_clients() -> None:
    # A column scaled by e^(0.01 z) and hardly any noise would show z; instead the noise of
    # inputs with no spread is nothing, so that the factor stands alone.
    flat = Examples(torch.ones(800, 1), POOL.labels)
    held = held_by(
        DataShift(0, 1, distortion=0.5),
        DataShift(1, 1, distortion=0.5),
        refresh_every=2,
        pool=flat,
    )
    factors = [held.pool.inputs[held.rows[number][who]].unique() for who in (0, 1)
               for number in (1, 2, 4)]  # fmt: skip
    assert all(len(factor) == 1 for factor in factors)
    assert factors[0].equal(factors[1])
    assert factors[1].equal(factors[2])
    assert factors[3].equal(factors[5])
    assert not factors[0].equal(factors[3])
    assert float(factors[0]) != 1


def test_a_later_shift_keeps_the_look_unless_it_names_one() -> None:
    held = held_by(
        DataShift(0, 1, distortion=0.5),
        DataShift(0, 2, weights=(1.0, 1.0, 1.0, 0.0)),
        DataShift(0, 3),
        DataShift(0, 4, distortion=0.0),
    )
    inputs = [held.pool.inputs[rows[0]] for rows in held.rows]
    is_plain = [bool((at == at.round()).all()) for at in inputs]
    assert is_plain == [True, False, False, False, True]
    assert held.shifts == {client(0): (1, 2, 4)}


def test_what_is_distorted_was_nobodys() -> None:
    # Inputs hardly distorted still tell whose copies they are: 0.001 of noise on 1 apart.
    held = held_by(DataShift(0, 1, distortion=1e-6), refresh_every=1)
    rows = torch.cat([at[who] for at in held.rows for who in (0, 1)])
    assert len(rows.unique()) == len(rows) == 200
    of = held.pool.inputs[rows].flatten().round()
    assert len(of.unique()) == 200
    assert float(of.max()) <= 790


def test_without_distortion_the_pool_is_the_training_part_itself() -> None:
    assert held_by(DataShift(0, 1, weights=(3.0, 1.0, 1.0, 1.0))).pool is POOL


def of_user(held: Holdings, who: int, number: int) -> list[int]:
    return (held.pool.inputs[held.rows[number][who]].long().flatten() - 1).div(
        100, rounding_mode="floor"
    ).unique().tolist()  # fmt: skip


def test_a_new_user_is_one_whom_no_client_has_been() -> None:
    held = held_by(
        DataShift(0, 1, new_user=True),
        DataShift(1, 1, new_user=True),
        DataShift(0, 3, new_user=True),
        users=USERS,
        refresh_every=2,
    )
    one, other = ([of_user(held, who, number) for number in range(5)] for who in (0, 1))
    assert one[0] == [0]
    assert other[0] == [1]
    assert one[1] == one[2] != one[3] == one[4]
    assert other[1] == other[4]
    users = [one[1][0], one[3][0], other[1][0]]
    assert len({0, 1, *users}) == 5
    # As the user has them: 25 of each label, of which 20 are 5 each.
    assert counts(held, 0)[1] == [5, 5, 5, 5]
    # The labels stay; that another person bears them is a shift.
    assert held.shifts == {client(0): (1, 3), client(1): (1,)}


def test_a_new_user_may_bring_shares_of_its_own() -> None:
    held = held_by(DataShift(0, 1, shares=(1.0, 0.0, 0.0, 0.0), new_user=True), users=USERS)
    assert counts(held, 0)[1] == [20, 0, 0, 0]
    assert of_user(held, 0, 1) != [0]


def test_only_the_client_that_exchanges_does() -> None:
    held = held_by(DataShift(0, 2))
    assert changes(held, 1) == [0] * 4


TEXTS = Examples(torch.ones(800, 5, dtype=torch.int64), POOL.labels)


@pytest.mark.parametrize(
    ("shift", "where", "said"),
    [
        (DataShift(2, 1), {}, "client 2 shifts, but there are 2 clients"),
        (DataShift(0, 1, shares=(0.5, 0.5)), {}, "2 shares, but the task has 4"),
        (DataShift(0, 1, weights=(1.0,)), {}, "1 weights, but the task has 4"),
        (DataShift(0, 1, new_user=True), {}, "clients are no users"),
        (
            DataShift(0, 1, weights=(1.0, 0.0, 0.0, 0.0)),
            {"first": (torch.tensor([1, 2, 3]), torch.tensor([4]))},
            "the weights leave nothing",
        ),
        (
            DataShift(0, 1, shares=(1.0, 0.0, 0.0, 0.0)),
            {"first": (torch.arange(500),)},
            "are left",
        ),
        (
            DataShift(0, 1, distortion=0.5),
            {"pool": TEXTS, "task": Task((5,), TASK.class_names, vocabulary=9)},
            "for images and columns of numbers",
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
def test_shifts_that_the_data_do_not_bear_are_refused(
    shift: DataShift, where: dict[str, object], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        held_by(shift, **where)


# Shifts are made inside of the test, for the types of what makes them are checked by chance.
settings_of_shifts = st.lists(
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


@settings(max_examples=40, deadline=None)
@given(
    settings_of_shifts,
    st.sampled_from((None, 2, 3)),
    st.integers(0, 99),
)
def test_sizes_stay_no_example_has_two_hands_and_the_control_is_the_same_until_the_shift(
    settings_: list[Any], refresh_every: int | None, seed: int
) -> None:
    planned = [DataShift(*one) for one in settings_]
    schedule = Schedule(7, refresh_every, tuple(planned))
    held, control = (
        held_by(*one.shifts, rounds=7, refresh_every=refresh_every, seed=seed)
        for one in (schedule, schedule.control())
    )
    owners: dict[int, int] = {}
    for rows in held.rows:
        for who, own in enumerate(rows):
            assert len(own.unique()) == len(own) == 20
            assert all(owners.setdefault(row, who) == who for row in own.tolist())
    assert control.shifts == {}
    assert all(counts(control, who) == [[5, 5, 5, 5]] * 7 for who in (0, 1))
    for number in range(min((shift.round for shift in planned), default=7)):
        for one, other in zip(held.rows[number], control.rows[number], strict=True):
            assert torch.equal(held.pool.inputs[one], control.pool.inputs[other])
    for who in (0, 1):
        assert changes(held, who) == changes(control, who)
    truly = {client(one.client): (one.round,) for one in planned if not one.is_exchange}
    assert held.shifts == truly
