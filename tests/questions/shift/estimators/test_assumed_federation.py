from dataclasses import replace
from functools import cache

import torch

from overheard.core.messages import Broadcast, Message
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.view import View
from overheard.questions.shift.estimators.assumed_federation import assume_federation
from overheard.simulation.target_groups import group_targets
from tests.runs.changed_updates import change_updates
from tests.runs.two_clients import BUILD, DIGITS, KNOWLEDGE, simulate_many_steps

KNOWN = replace(KNOWLEDGE, auxiliary=DIGITS.test)


@cache
def rival() -> View:
    return simulate_many_steps(None, 0).seen_by(client(0))


def assume(view: View, targets, cohort_size: int | None = None, **settings):
    (group,) = group_targets(view, targets, 99)
    if cohort_size is not None:
        group = replace(group, cohort_size=cohort_size)
    return assume_federation(view, KNOWN, BUILD, group, **settings)


def test_a_rival_simulates_itself_and_others_as_large_as_itself() -> None:
    design = assume(rival(), [COHORT])
    assert (design.clients, design.observers, design.target_clients) == (2, 1, 1)
    assert design.sizes == (200, 200)
    assert design.rounds == 9
    # Nine rounds in four chunks.
    assert design.exchange_every == 3
    assert assume(rival(), [COHORT], exchange_every=2).exchange_every == 2
    assert sum(design.label_shares) == 1 or abs(sum(design.label_shares) - 1) < 1e-6


def test_a_server_simulates_a_single_client_among_all() -> None:
    design = assume(simulate_many_steps(None, 0).seen_by(SERVER), [client(1)])
    assert (design.clients, design.observers, design.target_clients) == (2, 0, 1)


def test_a_rival_assumes_its_own_sampling_rate_for_others() -> None:
    view = rival()
    absent = [m for m in view.messages if not (m.sender == client(0) and m.round % 2)]
    seen = View(view.observers, tuple(absent), view.closing_broadcasts)
    # It was sampled in rounds 0, 2, 4, 6 and 8 of nine.
    assert assume(seen, [COHORT], 9).target_clients == 5
    assert assume(view, [COHORT], 9).target_clients == 9


def test_a_new_model_is_built_anew_and_a_trained_one_is_kept() -> None:
    view = rival()
    assert assume(view, [COHORT]).start is None
    later = view.during(range(3, 9))
    assert assume(later, [COHORT]).start is later.broadcasts()[3]
    trained = tuple(
        Message(
            m.round,
            m.sender,
            m.readers,
            Broadcast({name: 3 * weight for name, weight in m.body.weights.items()}),
        )
        if isinstance(m.body, Broadcast) and m.round == 0
        else m
        for m in view.messages
    )
    start = assume(View(view.observers, trained, view.closing_broadcasts), [COHORT]).start
    assert torch.equal(start["1.weight"], 3 * view.broadcasts()[0]["1.weight"])


def test_who_reads_control_variates_simulates_corrected_updates() -> None:
    view = simulate_many_steps(None, 0).seen_by(SERVER)
    assert assume(view, [client(1)]).is_plain
    corrected = change_updates(view.messages, lambda update: {"control": update.delta})
    seen = View(view.observers, corrected, view.closing_broadcasts)
    assert not assume(seen, [client(1)]).is_plain
    # A rival computes the mean of corrected updates from broadcasts.
    assert not assume(rival(), [COHORT]).is_plain
