"""What a run knows of itself."""

from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.parties import COHORT, client
from overheard.core.truth import GroundTruth, Partition

ONE, TWO = client(1), client(2)


@pytest.fixture
def truth() -> GroundTruth:
    return GroundTruth(
        {
            (0, ONE): torch.tensor([2, 0]),
            (0, TWO): torch.tensor([1, 1]),
            (1, ONE): torch.tensor([0, 5]),
        },
        {0: 0.5},
    )


def test_counts_of_a_client_are_summed_over_the_rounds_asked_for(truth: GroundTruth):
    assert truth.label_counts(ONE, (0,)).tolist() == [2, 0]
    assert truth.label_counts(ONE, (0, 1)).tolist() == [2, 5]
    assert truth.label_counts(TWO, range(9)).tolist() == [1, 1]


def test_the_cohorts_counts_are_those_of_all_who_answered(truth: GroundTruth):
    # round 0: (2, 0) + (1, 1) = (3, 1); round 1: client 1 alone, (0, 5)
    assert truth.label_counts(COHORT, (0,)).tolist() == [3, 1]
    assert truth.label_counts(COHORT, (0, 1)).tolist() == [3, 6]


@pytest.mark.parametrize(("target", "rounds"), [(TWO, (1,)), (client(3), (0,)), (COHORT, ())])
def test_refuses_a_target_that_trained_in_none_of_the_rounds(
    truth: GroundTruth, target, rounds: tuple[int, ...]
):
    with pytest.raises(ValueError, match=f"{target} trained in none"):
        truth.label_counts(target, rounds)


def test_asking_changes_no_count(truth: GroundTruth):
    truth.label_counts(ONE, (0, 1))
    assert truth.counts[0, ONE].tolist() == [2, 0]
    truth.label_counts(ONE, (0,)).add_(7)
    assert truth.counts[0, ONE].tolist() == [2, 0]


def test_tells_in_which_rounds_a_party_trained(truth: GroundTruth):
    assert truth.rounds_of(ONE) == {0, 1}
    assert truth.rounds_of(TWO) == {0}
    assert truth.rounds_of(COHORT) == {0, 1}
    assert truth.rounds_of(client(3)) == set()


def test_without_the_observers_nobody_is_told_who_they_are_and_the_others_stay(
    truth: GroundTruth,
):
    told = replace(
        truth,
        shifts={ONE: (1,), TWO: (1,)},
        users={ONE: "ann", TWO: "bob"},
        attributes={"hand": {"ann": "left", "bob": "right"}},
    )
    rest = told.without((ONE,))
    assert rest.users == {TWO: "bob"}
    assert rest.shifts == {TWO: (1,)}
    # What an attribute is does not depend on who is asked about.
    assert rest.attributes == told.attributes
    assert rest.rounds_of(ONE) == set()
    assert truth.users == truth.attributes == {}


def test_without_the_observers_the_cohort_is_the_rest(truth: GroundTruth):
    rest = truth.without((ONE,))
    assert rest.label_counts(COHORT, (0, 1)).tolist() == [1, 1]  # client 2, round 0
    assert rest.rounds_of(COHORT) == {0}
    assert rest.accuracy == truth.accuracy
    assert truth.without(()).label_counts(COHORT, (0,)).tolist() == [3, 1]
    assert truth.rounds_of(ONE) == {0, 1}


@pytest.fixture
def simulated(truth: GroundTruth) -> GroundTruth:
    """Client 1 goes over from rows 0 and 1 to row 3, client 2 holds rows 1 and 2."""
    pool = Examples(torch.arange(5.0)[:, None], torch.tensor([0, 0, 1, 1, 1]))
    rows = {
        (0, ONE): torch.tensor([1, 0]),
        (0, TWO): torch.tensor([1, 2]),
        (1, ONE): torch.tensor([3]),
    }
    return replace(truth, partition=Partition(pool, rows))


def held(truth: GroundTruth, *asked) -> list[float]:
    return truth.examples_of(*asked).inputs.flatten().tolist()


def test_of_a_simulated_run_each_example_is_told_once(simulated: GroundTruth):
    assert held(simulated, ONE, (0, 1)) == [0, 1, 3]
    assert held(simulated, ONE, (1,)) == [3]
    assert held(simulated, COHORT, (0, 1)) == [0, 1, 2, 3]
    assert held(simulated, TWO, (1,)) == []
    assert held(simulated.without([ONE]), COHORT, (0, 1)) == [1, 2]
    assert held(simulated.without([ONE]), ONE, (0, 1)) == []


def test_where_nobody_knows_the_examples_it_says_so(truth: GroundTruth, simulated: GroundTruth):
    for one in (truth, truth.without([ONE])):
        with pytest.raises(NeedsError, match="simulate the run"):
            one.examples_of(ONE, (0,))
    # Of two truths that a file holds alike, one may know more.
    assert "Partition" not in repr(simulated)
