"""The ground truth by target and round."""

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


def test_without_the_observers_only_facts_of_the_others_remain():
    truth = GroundTruth(
        Facts(
            UsersOfClients({ONE: "ann", TWO: "bob"}),
            Attributes({"hand": {"ann": "left"}}),
            Shifts({ONE: (1,), TWO: (1,)}),
        ),
        {0: 0.5},
    )
    rest = truth.without_parties((ONE,))
    assert rest.facts.get(UsersOfClients) == UsersOfClients({TWO: "bob"})
    assert rest.facts.get(Shifts) == Shifts({TWO: (1,)})
    # Attributes do not depend on the target.
    assert rest.facts.get(Attributes) == truth.facts.get(Attributes)
    assert rest.accuracy == truth.accuracy


@pytest.fixture
def simulated() -> GroundTruth:
    """Client 1 changes from rows 0 and 1 to row 3; client 2 has rows 1 and 2."""
    pool = Examples(torch.arange(5.0)[:, None], torch.tensor([0, 0, 1, 1, 1]))
    rows = {
        (0, ONE): torch.tensor([1, 0]),
        (0, TWO): torch.tensor([1, 2]),
        (1, ONE): torch.tensor([3]),
    }
    return GroundTruth(partition=Partition(pool, rows))


def inputs_of(truth: GroundTruth, *asked) -> list[float]:
    return truth.examples_of(*asked).inputs.flatten().tolist()


def test_examples_of_a_simulated_run_are_returned_once(simulated: GroundTruth):
    assert inputs_of(simulated, ONE, (0, 1)) == [0, 1, 3]
    assert inputs_of(simulated, ONE, (1,)) == [3]
    assert inputs_of(simulated, COHORT, (0, 1)) == [0, 1, 2, 3]
    assert inputs_of(simulated, TWO, (1,)) == []
    assert inputs_of(simulated.without_parties([ONE]), COHORT, (0, 1)) == [1, 2]
    assert inputs_of(simulated.without_parties([ONE]), ONE, (0, 1)) == []


def test_refuses_to_return_examples_of_a_recorded_run(simulated: GroundTruth):
    truth = GroundTruth()
    for one in (truth, truth.without_parties([ONE])):
        with pytest.raises(NeedsError, match="simulate the run"):
            one.examples_of(ONE, (0,))
    # Two truths with the same stored content may differ in the partition.
    assert "Partition" not in repr(simulated)
