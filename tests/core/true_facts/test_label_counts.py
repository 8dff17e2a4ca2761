"""Label counts by target and round, and the shares that examples are drawn from."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import COHORT, client
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.truth import Without

ONE, TWO = client(1), client(2)
COUNTS = LabelCounts(
    {
        (0, ONE): torch.tensor([2, 0]),
        (0, TWO): torch.tensor([1, 1]),
        (1, ONE): torch.tensor([0, 5]),
    }
)


def test_label_counts_are_summed_over_the_given_rounds():
    assert COUNTS.counts_of(ONE, (0,)).tolist() == [2, 0]
    assert COUNTS.counts_of(ONE, (0, 1)).tolist() == [2, 5]
    assert COUNTS.counts_of(TWO, range(9)).tolist() == [1, 1]


def test_the_cohorts_counts_are_those_of_all_clients_with_a_reply():
    # round 0: (2, 0) + (1, 1) = (3, 1); round 1: client 1 alone, (0, 5)
    assert COUNTS.counts_of(COHORT, (0,)).tolist() == [3, 1]
    assert COUNTS.counts_of(COHORT, (0, 1)).tolist() == [3, 6]
    assert COUNTS.rounds_of(COHORT) == {0, 1}


@pytest.mark.parametrize(("target", "rounds"), [(TWO, (1,)), (client(3), (0,)), (COHORT, ())])
def test_refuses_a_target_without_counts_in_the_rounds(target, rounds: tuple[int, ...]):
    with pytest.raises(NeedsError, match=f"no label counts of {target} in "):
        COUNTS.counts_of(target, rounds)


def test_summing_changes_no_count():
    COUNTS.counts_of(ONE, (0, 1))
    COUNTS.counts_of(ONE, (0,)).add_(7)
    assert COUNTS.counts[0, ONE].tolist() == [2, 0]


def test_without_the_observers_the_cohort_is_the_rest():
    rest = COUNTS.renamed(Without((ONE,)))
    assert rest.counts_of(COHORT, (0, 1)).tolist() == [1, 1]  # client 2, round 0
    assert rest.rounds_of(COHORT) == {0}
    assert rest.rounds_of(ONE) == set()
    assert COUNTS.renamed(Without(())).counts_of(COHORT, (0,)).tolist() == [3, 1]


def test_expected_counts_are_sizes_times_the_shares_that_examples_are_drawn_from():
    assert COUNTS.expected_counts_of(COHORT, (0, 1), None).tolist() == [3, 6]
    # Client 1 has 2 examples in round 0, drawn from .25 and .75: .5 and 1.5 of each label. In
    # round 1 it draws 2.5 and 2.5 of 5. Of client 2 nothing was drawn.
    shares = {0: torch.tensor([0.25, 0.75]).double(), 1: torch.tensor([0.5, 0.5]).double()}
    drawn = DrawnShares({ONE: shares})
    assert COUNTS.expected_counts_of(ONE, (0,), drawn).tolist() == [0.5, 1.5]
    assert COUNTS.expected_counts_of(COHORT, (0,), drawn).tolist() == [1.5, 2.5]
    assert COUNTS.expected_counts_of(ONE, (0, 1), drawn).tolist() == [3.0, 4.0]
    rest = drawn.renamed(Without((ONE,)))
    assert rest is not None
    assert rest.shares == {}


def test_shares_are_kept_where_they_change_and_hold_until_then():
    even, skewed = (torch.tensor(one).double() for one in ([0.5, 0.5], [1.0, 0.0]))
    drawn = DrawnShares.of_rounds([(even, even), (even, skewed), (skewed, skewed)])
    assert {party: [*one] for party, one in drawn.shares.items()} == {
        client(0): [0, 2],
        client(1): [0, 1],
    }
    assert drawn.shares_of(client(0), 1) is even
    assert drawn.shares_of(client(0), 9) is skewed
    assert drawn.shares_of(client(2), 0) is None
    # Client 0 trained for the last time in round 1, client 1 never.
    applying = drawn.applying_to(LabelCounts({(1, client(0)): torch.tensor([1, 1])}))
    assert {party: [*one] for party, one in applying.shares.items()} == {client(0): [0]}


def test_redrawn_counts_are_summed_as_the_actual_ones_are() -> None:
    def counts(*rows: tuple[int, int]) -> torch.Tensor:
        return torch.tensor(rows)

    redrawn = LabelCounts(
        {(number, client(who)): torch.tensor([1, 1]) for number in (0, 1) for who in (0, 1)},
        {
            (0, client(0)): counts((1, 0), (0, 2)),
            (1, client(0)): counts((3, 0), (0, 4)),
            (0, client(1)): counts((5, 5), (6, 6)),
        },
    )
    own = redrawn.redrawn_counts_of(client(0), (0, 1))
    assert own is not None
    assert own.tolist() == [[4, 0], [0, 6]]
    cohort = redrawn.redrawn_counts_of(COHORT, (0,))
    assert cohort is not None
    assert cohort.tolist() == [[6, 5], [6, 8]]
    others = redrawn.renamed(Without({client(0)})).redrawn_counts_of(COHORT, (0,))
    assert others is not None
    assert others.tolist() == [[5, 5], [6, 6]]
    assert redrawn.redrawn_counts_of(client(1), (1,)) is None
