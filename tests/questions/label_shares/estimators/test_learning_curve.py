"""Virtual clients are trained until twice as many hardly help, by the attacker's own error."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.compute_settings import TensorCache
from overheard.core.knowledge import Knowledge
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.learning_curve import (
    errors_by_halves,
    is_flat,
    portions,
    simulate_until_flat,
)
from overheard.simulation.chunk import chunk_width, draw_chunks
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import Simulation, run_simulation
from tests.simulation.small_run import CLIENTS, CountingCache, Raw, knowledge, server_view

ATTACKS: tuple[Attack[LabelShares], ...] = (
    Amortised(most_rounds=1, steps=2),
    Ldia(epochs=1, most_rounds=1),
    Ppa(epochs=1, samples=2, retraining=1),
    Whispers(epochs=1, most_rounds=1),
)


def limited(
    smallest_gain: float, virtual: int = 512, cache: TensorCache | None = None
) -> Knowledge:
    known = knowledge(virtual=virtual, shelf=cache)
    return replace(known, compute=replace(known.compute, smallest_gain=smallest_gain))


def errors_of_even_shares(simulation: Simulation) -> Tensor:
    return (simulation.shares - 1 / 3).abs().sum(1)


def test_portions_double_and_are_whole_chunks():
    assert portions(1200, 32) == (160, 320, 608)
    assert portions(512, 32) == (128, 256)
    assert portions(250, 32) == (128,)
    assert portions(127, 32) == ()
    # Four chunks or more: 300 would be three, and cohorts of a whole one need four.
    assert portions(1200, 100) == (600,)
    assert portions(1600, 100) == (400, 800)
    assert portions(700, 100) == (400,)
    assert portions(400, 100) == ()


@pytest.mark.slow
@pytest.mark.parametrize("members", [50, 1000])
def test_a_portion_of_cohorts_has_the_first_chunks_of_the_next_one(members: int):
    counts = (*portions(1280, chunk_width(members)), 1280)
    assert len(counts) > 1
    drawn = [draw_chunks(knowledge(virtual=n), (10, 60), members, Seed(3)) for n in counts]
    for portion, larger in pairwise(drawn):
        assert portion == larger[: len(portion)]


def test_flat_means_that_the_same_clients_gained_too_little():
    before = torch.tensor([1.0, 3.0])
    # The mean of the first two falls from 2 to 1.8; the third client was not there before.
    errors = torch.tensor([1.6, 2.0, 9.0])
    assert not is_flat(before, errors, 0.09)
    assert is_flat(before, errors, 0.11)


def test_stops_where_the_error_stays_the_same():
    known = limited(0.05)
    simulation, curve = simulate_until_flat(
        server_view(), known, (0,), [LastLayerChange()], errors_of_even_shares
    )
    # Even shares are as wrong with 256 virtual clients as with 128.
    assert (curve.clients, curve.trained, curve.planned) == ((128, 256), 256, 512)
    same = replace(known, compute=replace(known.compute, virtual_clients=256))
    alone = run_simulation(server_view(), same, (0,), [LastLayerChange()])
    assert torch.equal(simulation.counts, alone.counts)
    for probe, readings in alone.readings.items():
        assert torch.equal(simulation.readings[probe], readings)
    errors = errors_of_even_shares(alone)
    assert curve.errors == pytest.approx((float(errors[:128].mean()), float(errors.mean())))


@pytest.mark.slow
def test_trains_all_while_the_error_falls_and_nothing_twice():
    def halved(simulation: Simulation) -> Tensor:
        return errors_of_even_shares(simulation) * 64 / len(simulation.shares)

    known, cache = limited(0.4), CountingCache()
    known = replace(known, compute=replace(known.compute, cache=cache))
    simulation, curve = simulate_until_flat(server_view(), known, (0,), [Raw()], halved)
    assert (curve.clients, curve.trained) == ((128, 256), 512)
    assert len(simulation.shares) == 512
    # 16 chunks, and the label counts of 128, 256 and 512 clients.
    assert len(cache.saved) == len(set(cache.saved)) == 16 + 3


def test_trains_no_cohort_twice():
    known, cache = limited(0.5), CountingCache()
    known = replace(known, compute=replace(known.compute, cache=cache))
    _, curve = simulate_until_flat(
        server_view(),
        known,
        (0,),
        [Raw()],
        lambda one: one.shares.new_ones(len(one.counts)),
        cohort_size=20,
    )
    # Chunks of 40 cohorts: 4, then 3 more. The label counts are saved once a portion.
    assert (curve.clients, curve.trained) == ((160, 280), 280)
    assert len(cache.saved) == len(set(cache.saved)) == 7 + 2


def test_no_client_is_estimated_by_what_was_fitted_to_its_half():
    simulation = run_simulation(server_view(), knowledge(), (0,), [Raw()])

    def mean_of_trained(train: Simulation, test: Simulation) -> Tensor:
        assert not set(train.halves.tolist()) & set(test.halves.tolist())
        return train.shares.mean(0).expand_as(test.shares)

    errors = errors_by_halves(mean_of_trained, simulation)
    for half in (0, 1):
        own = simulation.halves == half
        expected = (simulation.shares[own] - simulation.shares[~own].mean(0)).abs().sum(1)
        assert torch.allclose(errors[own], expected)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.name)
def test_claims_are_those_of_the_virtual_clients_that_were_trained(
    attack: Attack[LabelShares],
):
    view, targets, cache = server_view(), CLIENTS[:1], CountingCache()
    claims = [
        attack.infer(view, targets, limited(gain, virtual, cache), Seed(1))[targets[0]]
        for gain, virtual in ((0.99, 512), (0.99, 256), (0.0, 256))
    ]
    stopped, whole, at_once = claims
    assert (stopped.own_errors.clients, whole.own_errors.clients) == ((128, 256), (128,))
    assert (stopped.own_errors.trained, stopped.own_errors.planned) == (256, 512)
    assert (whole.own_errors.trained, whole.own_errors.planned) == (256, 256)
    assert whole.own_errors.errors == stopped.own_errors.errors[:1]
    assert at_once.learning_curve() is None
    assert torch.equal(stopped.shares, at_once.shares)
    assert torch.equal(whole.shares, at_once.shares)
