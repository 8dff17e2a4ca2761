"""What sums reveal is read from the aggregates of a run alone."""

from overheard.core.messages import Aggregate, Message
from overheard.core.parties import COHORT, SERVER, client
from overheard.participation.example_counts import solve_example_counts
from overheard.participation.participation import Participation, find_participation
from overheard.participation.sums_reading import SumsReading, describe_sums, read_sums


def aggregate(number: int, clients: tuple[int, ...], examples: int | None = None) -> Message:
    body = Aggregate({}, frozenset(map(client, clients)), examples)
    return Message(number, COHORT, frozenset({SERVER}), body)


def participation(*messages: Message) -> Participation:
    found = find_participation(messages)
    assert found is not None
    return found


def reading(*messages: Message) -> SumsReading:
    found = read_sums(participation(*messages))
    assert found is not None
    return found


def test_a_run_without_aggregates_has_no_sums():
    assert find_participation(()) is None


def test_a_hidden_cohort_leaves_all_sums_unread():
    assert find_participation((aggregate(0, (0, 1)), aggregate(1, ()))) is None


def test_observers_subtract_themselves():
    found = find_participation((aggregate(0, (0, 1, 2), 30),), (client(0),))
    assert found is not None
    assert (found.clients, found.totals) == ((client(1), client(2)), (None,))


def test_example_counts_follow_from_their_totals():
    # 0 + 1 = 30, 1 + 2 = 50, 0 + 2 = 40: 10, 20 and 30.
    sums = (aggregate(0, (0, 1), 30), aggregate(1, (1, 2), 50), aggregate(2, (0, 2), 40))
    found = solve_example_counts(participation(*sums))
    assert found is not None
    assert found.by_client == {0: 10, 1: 20, 2: 30}
    both = reading(*sums)
    assert (both.counts_known, both.is_weighted, both.group_at_most) == (3, True, 1)
    # Two sums determine no client: they give differences alone.
    assert reading(*sums[:2]).counts_known == 0


def test_totals_that_no_constant_counts_explain_tell_no_count():
    sums = (aggregate(0, (0, 1), 30), aggregate(1, (0, 1), 31))
    found = solve_example_counts(participation(*sums))
    assert found is not None
    assert not found.is_constant
    assert reading(*sums).counts_known is None


def test_hidden_totals_leave_sizes_equal():
    found = reading(aggregate(0, (0, 1)), aggregate(1, (1,)))
    assert (found.counts_known, found.is_weighted) == (None, False)
    # I + A'A = [[2, 1], [1, 3]] has the determinant 5: 1 - 3/5 and 1 - 2/5.
    assert abs(found.largest_resolution - 0.6) < 1e-9
    assert abs(found.resolution - 0.5) < 1e-9


def test_fixed_cohorts_are_said_to_hide_single_clients_and_not_their_sum():
    fixed = reading(*(aggregate(one, (0, 1, 2)) for one in range(4)))
    text = " ".join(describe_sums(fixed))
    assert "Cohorts do not vary" in text
    assert "The server learns their sum, and who is in it." in text
    assert "a weighted sum of 3 clients follows" in text
    heard = " ".join(describe_sums(fixed, observers="client 1"))
    assert "Their sum is known, and who is in it." in heard
    assert "server" not in heard


def test_too_many_clients_are_not_computed():
    many = participation(*(aggregate(one, tuple(range(2000))) for one in range(3)))
    assert read_sums(many) is not None
    wide = Participation(many.clients * 30, many.rounds, many.took_part.repeat(30, 1), ())
    assert read_sums(wide) is None
