"""All targets of a run stand in one table."""

import numpy as np
import pytest

from overheard.questions.identity.statistics.ranking import by_user, rankings
from tests.auditing.recognised import found


def test_known_people_come_first_and_strangers_after() -> None:
    held = [
        found((0.1, 0.2, 0.3, 0.4), "stranger", 0),
        found((0.5, 0.6, 0.7, 0.8), "c", 1),
        found((0.0, 0.0, 0.0, 1.0), "a", 2),
    ]
    (ranking,) = rankings(held)
    assert ranking.people == ("a", "c", "stranger")
    assert ranking.known == 2
    assert [ranking.users[place] for place in ranking.column] == ["a", "c"]
    assert [ranking.people[place] for place in ranking.person] == ["stranger", "c", "a"]
    assert ranking.scores[1].tolist() == [0.5, 0.6, 0.7, 0.8]


def test_the_precision_of_each_user_is_worked_by_hand() -> None:
    # By the score for a: targets 0 (b's), 1 (a's), 2 (a's): (1/2 + 2/3) / 2 = 7/12. By that
    # for b: its own target 0 is last of three: 1/3. c and d sent nothing.
    held = [
        found((0.9, 0.1, 0, 0), "b", 0),
        found((0.8, 0.2, 0, 0), "a", 1),
        found((0.7, 0.3, 0, 0), "a", 2),
    ]
    assert by_user(rankings(held)) == pytest.approx({(0, "a"): 7 / 12, (0, "b"): 1 / 3})
    (ranking,) = rankings(held)
    # In a random order a's two are at 1 and 2, 1 and 3, or 2 and 3; b's one at 1, 2 or 3.
    assert ranking.chances() == pytest.approx([(1 + 5 / 6 + 7 / 12) / 3, 11 / 18])


def test_targets_are_ranked_among_those_of_their_own_run() -> None:
    held = [found((9, 0, 0, 0), "b", 0, seed=1), found((1, 0, 0, 0), "a", 0, seed=2)]
    assert by_user(rankings(held)) == {(1, "b"): 1.0, (2, "a"): 1.0}


def test_a_user_whom_a_claim_left_out_is_ranked_last() -> None:
    held = [
        found((0.5, 0.1), "b", 0, users=("a", "b")),
        found((0.5,), "b", 1, users=("a",), known=("a", "b")),
    ]
    (ranking,) = rankings(held)
    assert ranking.scores[1].tolist() == [0.5, -np.inf]
    assert ranking.known == 1


def test_a_run_without_anybody_known_is_none() -> None:
    assert rankings([found((1, 0, 0, 0), "stranger", 0)]) == ()
    assert rankings([]) == ()


def test_chances_of_a_stranger_count_only_where_all_targets_have_one() -> None:
    some = found((1, 0, 0, 0), "a", 0, unseen=0.25)
    (all_told,) = rankings([some])
    assert all_told.unknown is not None
    assert all_told.unknown.tolist() == [0.25]
    (not_all,) = rankings([some, found((1, 0, 0, 0), "a", 1)])
    assert not_all.unknown is None
