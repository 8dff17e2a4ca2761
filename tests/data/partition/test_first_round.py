"""Counts are multinomial draws of the label shares; worked by hand or against scipy."""

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition, draw_partition
from overheard.data.partition.first_round import SplitSettings, draw_first_chunks
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import DataShift, Schedule
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.iid import Iid

CLASSES, SIZE = 2, 40
POOL = Examples(torch.arange(1.0, 4001.0)[:, None], torch.arange(4000) % CLASSES)
# Four users of 1,000 examples each; a quarter of those of an odd user have label 0.
USERS = torch.arange(4000) // 1000
LABELS_OF_USERS = torch.where(USERS % 2 == 1, (torch.arange(4000) % 4).clamp(max=1), 0)
DATA = Dataset(POOL, POOL, Task((1,), ("a", "b")))
TO_80 = DataShift(1, 4, weights=(8.0, 2.0))
NATURAL = Schedule(8, 2, (TO_80,), draws="natural", first_draws="natural")


def partition_of(
    schedule: Schedule, seed: int = 0, split: Split | None = None, data: Dataset = DATA
) -> DataPartition:
    return draw_partition(
        data,
        SplitSettings(split or Iid(fluctuation=0.0), (SIZE, SIZE)),
        clients=2,
        auxiliary=AuxiliarySize(),
        test=None,
        schedule=schedule,
        seed=Seed(seed),
    )


def firsts(partition: DataPartition, place: int) -> list[int]:
    """Return how many of a client's examples have label 0, by round."""
    rows = (partition.pool.labels[held[place]] for held in partition.rows)
    return [int((labels == 0).sum()) for labels in rows]


@pytest.mark.slow
def test_every_chunk_varies_as_a_binomial_draw_of_the_client_s_own_shares() -> None:
    # Of 40 examples of even shares: mean 20 and variance 10. From round 4 on, 80 % of client
    # 1's: mean 32 and variance 6.4.
    drawn = [firsts(partition_of(NATURAL, seed), 1) for seed in range(300)]
    by_round = torch.tensor(drawn, dtype=torch.float64)  # (runs, rounds)
    assert by_round[:, ::2].equal(by_round[:, 1::2])
    before, after = by_round[:, [0, 2]], by_round[:, [4, 6]]
    # Standard errors are sqrt(10 / 600) = .13, and 10 * sqrt(2 / 600) = .58 of the variance.
    assert float(before.mean()) == pytest.approx(20, abs=0.5)
    assert float(before.var()) == pytest.approx(10, abs=2)
    assert float(after.mean()) == pytest.approx(32, abs=0.5)
    assert float(after.var()) == pytest.approx(6.4, abs=1.4)
    # Chunks are independent, however close their rounds.
    assert abs(float(torch.corrcoef(by_round[:, [0, 2, 4, 6]].T)[0, 1])) < 0.2


def test_an_exact_control_of_natural_draws_copies_the_first_chunk() -> None:
    planned = partition_of(NATURAL)
    control = partition_of(NATURAL.control("exact"))
    first = firsts(planned, 1)[0]
    assert firsts(control, 1) == [first] * 8
    assert control.shifts == {}


def test_a_natural_control_is_the_planned_run_up_to_the_shift_and_then_its_own() -> None:
    planned, one, two = (
        partition_of(schedule)
        for schedule in (NATURAL, NATURAL.control("natural"), NATURAL.control("natural", 1))
    )
    for number in range(4):
        for place in (0, 1):
            assert planned.rows[number][place].equal(one.rows[number][place])
            assert planned.rows[number][place].equal(two.rows[number][place])
    for number in range(4, 8):
        # Client 0 does not shift, and yet has other examples in each run.
        assert not planned.rows[number][0].equal(one.rows[number][0])
        assert not one.rows[number][0].equal(two.rows[number][0])
    assert (planned.shifts, one.shifts) == ({client(1): (4,)}, {})


def test_states_the_shares_that_examples_are_drawn_from() -> None:
    drawn_from = partition_of(NATURAL).drawn_from
    assert drawn_from is not None
    of_first_label = [float(shares[1][0]) for shares in drawn_from]
    assert of_first_label == pytest.approx([0.5] * 4 + [0.8] * 4)
    assert [shares[0].tolist() for shares in drawn_from] == [[0.5, 0.5]] * 8


def test_a_second_shift_starts_from_the_shares_and_not_from_what_was_drawn() -> None:
    again = DataShift(1, 6, weights=(2.0, 8.0))
    schedule = Schedule(8, None, (TO_80, again), "natural", "natural")
    drawn_from = partition_of(schedule).drawn_from
    assert drawn_from is not None
    # .8 to .2 times 2 to 8: equal again.
    assert drawn_from[7][1].tolist() == pytest.approx([0.5, 0.5])


def test_the_shares_of_a_drift_move_evenly() -> None:
    schedule = Schedule(6, None, (DataShift(1, 2, (1.0, 0.0), over=2),), "natural", "natural")
    partition = partition_of(schedule)
    assert partition.drawn_from is not None
    expected = [0.5, 0.5, 0.75, 1, 1, 1]
    assert [float(shares[1][0]) for shares in partition.drawn_from] == expected
    assert firsts(partition, 1)[3:] == [SIZE] * 3


def test_examples_of_clients_that_never_exchange_any_stay_those_of_the_split() -> None:
    plain = partition_of(Schedule(3))
    natural = partition_of(Schedule(3, draws="natural", first_draws="natural"))
    for place in (0, 1):
        assert plain.rows[0][place].equal(natural.rows[0][place])


def test_a_client_that_is_a_user_draws_from_that_user_s_examples() -> None:
    examples = Examples(POOL.inputs, LABELS_OF_USERS)
    data = Dataset(examples, examples, DATA.task, USERS)
    free = torch.ones(4000, dtype=torch.bool)
    rows = (torch.arange(10), torch.arange(1000, 1010))
    first, shares = draw_first_chunks(data, USERS, rows, free, NATURAL, Seed(0))
    assert first == rows
    assert shares is not None
    assert [one.tolist() for one in shares] == [[1.0, 0.0], [0.25, 0.75]]
    schedule = Schedule(6, 1, draws="natural", first_draws="natural")
    partition = partition_of(schedule, split=ByUser(), data=data)
    for place in (0, 1):
        held = torch.cat([held[place] for held in partition.rows])
        assert len(held.unique()) == 6 * SIZE
        assert len(USERS[held].unique()) == 1


def test_refuses_to_draw_more_than_there_is() -> None:
    free = torch.zeros(4000, dtype=torch.bool)
    free[:30] = True
    of_one_label = (torch.arange(0, 80, 2),)
    with pytest.raises(PlanError, match=r"set data\.exchanges = 'exact'"):
        draw_first_chunks(DATA, None, of_one_label, free, NATURAL, Seed(0))
