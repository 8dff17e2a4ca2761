"""The models of a target, put together from what is said."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.transcript import Transcript
from overheard.core.view import mean_update
from overheard.questions.shift.estimators.models_heard import ModelsHeard

RIVAL, OTHER, THIRD = client(0), client(1), client(2)


def federation(deltas, sizes=None, *, summed=False, silent=()):
    """Rounds of averaging one number, from 0; deltas[round][client]."""
    start, said = 0.0, []
    sizes = sizes or [1] * len(deltas[0])
    clients = [client(number) for number in range(len(sizes))]
    server = frozenset({SERVER})
    for number, row in enumerate(deltas):
        said.append(broadcast(number, clients, start))
        updates = [Update({"w": torch.tensor([d])}, n) for d, n in zip(row, sizes, strict=True)]
        mean = mean_update(updates)
        readers = frozenset() if summed else server
        said += [
            Message(number, who, readers, update)
            for who, update in zip(clients, updates, strict=True)
            if (number, who) not in silent
        ]
        if summed:
            aggregate = Aggregate(mean.delta, frozenset(clients), mean.examples)
            said.append(Message(number, SERVER, server, aggregate))
        start += float(mean.delta["w"])
    return Transcript((*said, broadcast(len(deltas), clients, start)))


def broadcast(number, clients, weight):
    return Message(number, SERVER, frozenset(clients), Broadcast({"w": torch.tensor([weight])}))


def models(view, target, extract=True):
    course = ModelsHeard(view, target, extract)
    weights = [float(model["w"]) for model in course.models()]
    return dict(zip(course.rounds(), weights, strict=True))


def test_a_rivals_very_model_is_extracted_in_a_federation_of_two():
    # 0 + 4 = 4; the next start is (2 + 4) / 2 = 3, and 3 - 6 = -3.
    view = federation([(2.0, 4.0), (1.0, -6.0)]).seen_by(RIVAL)
    assert models(view, COHORT) == pytest.approx({0: 4, 1: -3})


@given(
    st.lists(st.tuples(st.integers(-64, 64), st.integers(-64, 64)), min_size=1, max_size=4).map(
        lambda rows: [tuple(float(d) for d in row) for row in rows]
    )
)
def test_extraction_is_exact_for_two_whatever_they_send(deltas):
    run = federation(deltas)
    assert models(run.seen_by(RIVAL), COHORT) == models(run.seen_by(SERVER), OTHER)


def test_of_three_the_mean_of_the_others_is_left():
    # (6 + 0) / 2 = 3.
    view = federation([(3.0, 6.0, 0.0)]).seen_by(RIVAL)
    assert models(view, COHORT) == pytest.approx({0: 3})


def test_two_who_collude_leave_the_third():
    view = federation([(3.0, 6.0, 9.0)]).seen_by(RIVAL, OTHER)
    assert models(view, COHORT) == pytest.approx({0: 9})


def test_sizes_that_are_not_told_are_taken_to_be_alike():
    # The mean is (1 * 0 + 3 * 4) / 4 = 3; 2 * 3 - 0 = 6 is read where it was 4.
    view = federation([(0.0, 4.0)], sizes=[1, 3]).seen_by(RIVAL)
    assert models(view, COHORT) == pytest.approx({0: 6})


def test_unextracted_models_are_the_broadcasts_that_follow():
    # Starts are 0, 3, 3 - 2.5 = 0.5.
    view = federation([(2.0, 4.0), (1.0, -6.0)]).seen_by(RIVAL)
    assert models(view, COHORT, extract=False) == pytest.approx({0: 3, 1: 0.5})


def test_unextracted_models_of_some_rounds_are_told_by_what_they_came_to():
    view = federation([(2.0, 4.0), (1.0, -6.0), (0.0, 0.0)]).seen_by(RIVAL).during((1,))
    assert models(view, COHORT, extract=False) == pytest.approx({1: 0.5})
    assert models(view, COHORT) == pytest.approx({1: -3})


@pytest.mark.parametrize("extract", [True, False])
def test_a_server_follows_one_client_by_its_own_updates(extract):
    view = federation([(2.0, 4.0), (1.0, -6.0)]).seen_by(SERVER)
    assert models(view, RIVAL, extract) == pytest.approx({0: 2, 1: 4})


def test_a_server_behind_secure_aggregation_follows_the_mean():
    # By sizes (1 * 2 + 3 * 4) / 4 = 3.5.
    view = federation([(2.0, 4.0)], sizes=[1, 3], summed=True).seen_by(SERVER)
    assert models(view, COHORT) == pytest.approx({0: 3.5})


def test_a_server_takes_the_mean_of_updates_in_the_clear():
    view = federation([(2.0, 4.0)], sizes=[1, 3]).seen_by(SERVER)
    assert models(view, COHORT) == pytest.approx({0: 3.5})


def test_rounds_in_which_the_target_was_silent_are_left_out():
    run = federation([(1.0, 2.0)] * 3, silent={(1, OTHER)})
    assert ModelsHeard(run.seen_by(SERVER), OTHER).rounds() == (0, 2)
    assert ModelsHeard(run.seen_by(SERVER), THIRD).rounds() == ()


def test_rounds_whose_broadcast_was_not_recorded_are_left_out():
    run = federation([(1.0, 2.0)] * 4)
    kept = tuple(
        m for m in run.messages if not (m.round == 1 and isinstance(m.body, Broadcast))
    )
    assert ModelsHeard(Transcript(kept).seen_by(SERVER), OTHER).rounds() == (0, 2, 3)
    # Without the start of round 1 neither round 0 nor round 1 can be told by a rival.
    assert ModelsHeard(Transcript(kept).seen_by(RIVAL), COHORT).rounds() == (2, 3)


def test_one_who_is_alone_has_nobody_to_follow():
    view = federation([(1.0,)] * 3).seen_by(RIVAL)
    assert ModelsHeard(view, COHORT).rounds() == ()
    assert ModelsHeard(view, COHORT, extract=False).rounds() == ()
