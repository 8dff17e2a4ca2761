"""Schedules keep together whom they say, and cost what they say."""

import numpy as np
import pytest

from overheard.core.errors import PlanError
from overheard.planning.cohorts.schedules import CohortSchedule, find_cost, propose_schedules


def named(name: str, *numbers: int) -> CohortSchedule:
    return next(one for one in propose_schedules(*numbers) if one.name == name)


def test_schedules_go_from_those_that_vary_most_to_fixed_groups():
    # 10 divides into five parts of 2 and two parts of 5.
    assert [one.name for one in propose_schedules(20, 10, 4)] == [
        "random cohorts",
        "fair cohorts",
        "batches of 2",
        "batches of 5",
        "fixed groups of 10",
    ]


def test_a_cohort_of_a_prime_number_has_no_batches():
    names = [one.name for one in propose_schedules(20, 7, 4)]
    assert names == ["random cohorts", "fair cohorts", "fixed groups of 7"]


@pytest.mark.parametrize(("name", "size"), [("batches of 5", 5), ("fixed groups of 10", 10)])
def test_clients_of_a_batch_are_in_the_same_rounds(name: str, size: int):
    took_part = named(name, 20, 10, 12).took_part
    _, counts = np.unique(took_part, axis=1, return_counts=True)
    assert counts.tolist() == [size] * (20 // size)
    assert (took_part.sum(axis=1) == 10).all()


def test_clients_that_are_left_over_join_a_batch():
    took_part = named("fixed groups of 3", 8, 3, 4).took_part
    _, counts = np.unique(took_part, axis=1, return_counts=True)
    assert sorted(counts.tolist()) == [4, 4]


@pytest.mark.parametrize("name", ["fair cohorts", "batches of 2", "fixed groups of 10"])
def test_who_took_part_least_often_is_next(name: str):
    often = named(name, 20, 10, 7).took_part.sum(axis=0)
    assert often.max() - often.min() <= 1


def test_the_cost_counts_rounds():
    took_part = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 1]], dtype=bool)
    cost = find_cost(took_part)
    assert (cost.smallest_cohort, cost.largest_cohort) == (1, 2)
    assert (cost.least_rounds, cost.most_rounds) == (1, 3)
    # Client 2 takes part in the fourth round for the first time, after a wait of three.
    assert (cost.all_seen_after, cost.longest_wait) == (4, 3)


def test_a_client_that_never_takes_part_is_never_seen():
    cost = find_cost(np.array([[1, 0], [1, 0]], dtype=bool))
    assert (cost.all_seen_after, cost.least_rounds, cost.longest_wait) == (None, 0, 2)


@pytest.mark.parametrize("numbers", [(1, 1, 4), (20, 21, 4), (20, 0, 4), (20, 10, 0)])
def test_numbers_out_of_range_are_refused(numbers: tuple[int, int, int]):
    with pytest.raises(PlanError, match="a cohort of 1 to all clients"):
        propose_schedules(*numbers)
