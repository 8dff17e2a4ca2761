"""A target's models are computed from broadcasts and updates."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.transcript import Transcript
from overheard.core.view import mean_update
from overheard.questions.shift.estimators.trend_reader import TargetModels

RIVAL, OTHER, THIRD = client(0), client(1), client(2)


def federation(deltas, sizes=None, *, summed=False, silent=()):
    """Build a federation that averages one number, from 0, with deltas[round][client]."""
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
            Message(number, sender, readers, update)
            for sender, update in zip(clients, updates, strict=True)
            if (number, sender) not in silent
        ]
        if summed:
            aggregate = Aggregate(mean.delta, frozenset(clients), mean.examples)
            said.append(Message(number, SERVER, server, aggregate))
        start += float(mean.delta["w"])
    return Transcript((*said, broadcast(len(deltas), clients, start)))


def broadcast(number, clients, weight):
    return Message(number, SERVER, frozenset(clients), Broadcast({"w": torch.tensor([weight])}))


def models(view, target, extract=True):
    course = TargetModels(view, target, extract)
    weights = [float(model["w"]) for model in course.models()]
    return dict(zip(course.rounds(), weights, strict=True))


@given(
    st.lists(st.tuples(st.integers(-64, 64), st.integers(-64, 64)), min_size=1, max_size=4).map(
        lambda rows: [tuple(float(d) for d in row) for row in rows]
    )
)
def test_extraction_is_exact_for_two_whatever_they_send(deltas):
    run = federation(deltas)
    assert models(run.seen_by(RIVAL), COHORT) == models(run.seen_by(SERVER), OTHER)


def test_extracts_the_mean_of_the_other_two_of_three():
    # (6 + 0) / 2 = 3.
    view = federation([(3.0, 6.0, 0.0)]).seen_by(RIVAL)
    assert models(view, COHORT) == pytest.approx({0: 3})


def test_two_colluding_clients_extract_the_third():
    view = federation([(3.0, 6.0, 9.0)]).seen_by(RIVAL, OTHER)
    assert models(view, COHORT) == pytest.approx({0: 9})


def test_unreported_sizes_are_assumed_equal():
    # The mean is (1 * 0 + 3 * 4) / 4 = 3; 2 * 3 - 0 = 6 is read instead of 4.
    view = federation([(0.0, 4.0)], sizes=[1, 3]).seen_by(RIVAL)
    assert models(view, COHORT) == pytest.approx({0: 6})


def test_unextracted_models_are_the_next_broadcasts():
    # Starts are 0, 3, 3 - 2.5 = 0.5.
    view = federation([(2.0, 4.0), (1.0, -6.0)]).seen_by(RIVAL)
    assert models(view, COHORT, extract=False) == pytest.approx({0: 3, 1: 0.5})


def test_unextracted_models_of_selected_rounds_use_the_closing_broadcast():
    view = federation([(2.0, 4.0), (1.0, -6.0), (0.0, 0.0)]).seen_by(RIVAL).during((1,))
    assert models(view, COHORT, extract=False) == pytest.approx({1: 0.5})
    assert models(view, COHORT) == pytest.approx({1: -3})


@pytest.mark.parametrize("extract", [True, False])
def test_a_server_reads_one_client_from_its_updates(extract):
    view = federation([(2.0, 4.0), (1.0, -6.0)]).seen_by(SERVER)
    assert models(view, RIVAL, extract) == pytest.approx({0: 2, 1: 4})


def test_a_server_with_secure_aggregation_reads_the_mean():
    # By sizes (1 * 2 + 3 * 4) / 4 = 3.5.
    view = federation([(2.0, 4.0)], sizes=[1, 3], summed=True).seen_by(SERVER)
    assert models(view, COHORT) == pytest.approx({0: 3.5})


def test_a_server_takes_the_mean_of_updates_in_the_clear():
    view = federation([(2.0, 4.0)], sizes=[1, 3]).seen_by(SERVER)
    assert models(view, COHORT) == pytest.approx({0: 3.5})


def test_omits_rounds_without_an_update_of_the_target():
    run = federation([(1.0, 2.0)] * 3, silent={(1, OTHER)})
    assert TargetModels(run.seen_by(SERVER), OTHER).rounds() == (0, 2)
    assert TargetModels(run.seen_by(SERVER), THIRD).rounds() == ()


def test_omits_rounds_without_a_recorded_broadcast():
    run = federation([(1.0, 2.0)] * 4)
    kept = tuple(
        m for m in run.messages if not (m.round == 1 and isinstance(m.body, Broadcast))
    )
    assert TargetModels(Transcript(kept).seen_by(SERVER), OTHER).rounds() == (0, 2, 3)
    # Without the start of round 1, a rival can read neither round 0 nor round 1.
    assert TargetModels(Transcript(kept).seen_by(RIVAL), COHORT).rounds() == (2, 3)
