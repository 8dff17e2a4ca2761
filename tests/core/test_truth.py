"""The ground truth by target and round."""

from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.parties import COHORT, client
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
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


def test_label_counts_are_summed_over_the_given_rounds(truth: GroundTruth):
    assert truth.label_counts(ONE, (0,)).tolist() == [2, 0]
    assert truth.label_counts(ONE, (0, 1)).tolist() == [2, 5]
    assert truth.label_counts(TWO, range(9)).tolist() == [1, 1]


def test_the_cohorts_counts_are_those_of_all_clients_with_a_reply(truth: GroundTruth):
    # round 0: (2, 0) + (1, 1) = (3, 1); round 1: client 1 alone, (0, 5)
    assert truth.label_counts(COHORT, (0,)).tolist() == [3, 1]
    assert truth.label_counts(COHORT, (0, 1)).tolist() == [3, 6]


@pytest.mark.parametrize(("target", "rounds"), [(TWO, (1,)), (client(3), (0,)), (COHORT, ())])
def test_refuses_a_target_without_counts_in_the_rounds(
    truth: GroundTruth, target, rounds: tuple[int, ...]
):
    with pytest.raises(NeedsError, match=f"no label counts of {target} in "):
        truth.label_counts(target, rounds)


def test_summing_changes_no_count(truth: GroundTruth):
    truth.label_counts(ONE, (0, 1))
    assert truth.counts[0, ONE].tolist() == [2, 0]
    truth.label_counts(ONE, (0,)).add_(7)
    assert truth.counts[0, ONE].tolist() == [2, 0]


def test_without_the_observers_only_the_others_users_and_shifts_remain(
    truth: GroundTruth,
):
    known = replace(
        truth,
        facts=Facts(
            (
                UsersOfClients({ONE: "ann", TWO: "bob"}),
                Attributes({"hand": {"ann": "left"}}),
                Shifts({ONE: (1,), TWO: (1,)}),
            )
        ),
    )
    rest = known.without_parties((ONE,))
    assert rest.facts.need(UsersOfClients).users == {TWO: "bob"}
    assert rest.facts.get(Shifts) == Shifts({TWO: (1,)})
    # Attributes do not depend on the target.
    assert rest.facts.need(Attributes) is known.facts.need(Attributes)
    assert rest.rounds_of(ONE) == set()


def test_without_the_observers_the_cohort_is_the_rest(truth: GroundTruth):
    rest = truth.without_parties((ONE,))
    assert rest.label_counts(COHORT, (0, 1)).tolist() == [1, 1]  # client 2, round 0
    assert rest.rounds_of(COHORT) == {0}
    assert rest.accuracy == truth.accuracy
    assert truth.without_parties(()).label_counts(COHORT, (0,)).tolist() == [3, 1]
    assert truth.rounds_of(ONE) == {0, 1}


def test_expected_counts_are_sizes_times_the_shares_that_examples_are_drawn_from(
    truth: GroundTruth,
):
    assert truth.expected_counts(COHORT, (0, 1)).equal(
        truth.label_counts(COHORT, (0, 1)).double()
    )
    # Client 1 has 2 examples in round 0, drawn from .25 and .75: .5 and 1.5 of each label. In
    # round 1, and of client 2, nothing was drawn.
    shares = {(0, ONE): torch.tensor([0.25, 0.75], dtype=torch.float64)}
    drawn = replace(truth, drawn_from=shares)
    assert int(truth.label_counts(ONE, (0,)).sum()) == 2
    assert drawn.expected_counts(ONE, (0,)).tolist() == [0.5, 1.5]
    of_others = truth.label_counts(COHORT, (0,)) - truth.label_counts(ONE, (0,))
    expected = of_others.double() + torch.tensor([0.5, 1.5])
    assert drawn.expected_counts(COHORT, (0,)).equal(expected)
    assert drawn.expected_counts(ONE, (1,)).equal(truth.label_counts(ONE, (1,)).double())
    assert drawn.without_parties((ONE,)).drawn_from == {}


@pytest.fixture
def simulated(truth: GroundTruth) -> GroundTruth:
    """Client 1 changes from rows 0 and 1 to row 3; client 2 has rows 1 and 2."""
    pool = Examples(torch.arange(5.0)[:, None], torch.tensor([0, 0, 1, 1, 1]))
    rows = {
        (0, ONE): torch.tensor([1, 0]),
        (0, TWO): torch.tensor([1, 2]),
        (1, ONE): torch.tensor([3]),
    }
    return replace(truth, partition=Partition(pool, rows))


def inputs_of(truth: GroundTruth, *asked) -> list[float]:
    return truth.examples_of(*asked).inputs.flatten().tolist()


def test_examples_of_a_simulated_run_are_returned_once(simulated: GroundTruth):
    assert inputs_of(simulated, ONE, (0, 1)) == [0, 1, 3]
    assert inputs_of(simulated, ONE, (1,)) == [3]
    assert inputs_of(simulated, COHORT, (0, 1)) == [0, 1, 2, 3]
    assert inputs_of(simulated, TWO, (1,)) == []
    assert inputs_of(simulated.without_parties([ONE]), COHORT, (0, 1)) == [1, 2]
    assert inputs_of(simulated.without_parties([ONE]), ONE, (0, 1)) == []


def test_refuses_to_return_examples_of_a_recorded_run(
    truth: GroundTruth, simulated: GroundTruth
):
    for one in (truth, truth.without_parties([ONE])):
        with pytest.raises(NeedsError, match="simulate the run"):
            one.examples_of(ONE, (0,))
    # Two truths with the same stored content may differ in the partition.
    assert "Partition" not in repr(simulated)


def test_redrawn_counts_are_summed_as_the_actual_ones_are() -> None:
    def counts(*rows: tuple[int, int]) -> torch.Tensor:
        return torch.tensor(rows)

    truth = GroundTruth(
        {(number, client(who)): torch.tensor([1, 1]) for number in (0, 1) for who in (0, 1)},
        {},
        redrawn_counts={
            (0, client(0)): counts((1, 0), (0, 2)),
            (1, client(0)): counts((3, 0), (0, 4)),
            (0, client(1)): counts((5, 5), (6, 6)),
        },
    )
    own = truth.redrawn_label_counts(client(0), (0, 1))
    assert own is not None
    assert own.tolist() == [[4, 0], [0, 6]]
    cohort = truth.redrawn_label_counts(COHORT, (0,))
    assert cohort is not None
    assert cohort.tolist() == [[6, 5], [6, 8]]
    others = truth.without_parties({client(0)}).redrawn_label_counts(COHORT, (0,))
    assert others is not None
    assert others.tolist() == [[5, 5], [6, 6]]
    assert truth.redrawn_label_counts(client(1), (1,)) is None
