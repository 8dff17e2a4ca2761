from dataclasses import replace
from functools import partial

import torch

from overheard.algorithms.scaffold import Scaffold
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, apply_update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import mean_update
from overheard.defenses.noise import Noise
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.simulation.federations.design import FederationDesign, draw_federation
from overheard.simulation.federations.resampling_pool import build_resampling_pool
from overheard.simulation.federations.run import run_simulated_federations
from tests.runs.two_clients import BUILD, DIGITS, MANY_STEPS

POOL = build_resampling_pool(DIGITS.test.take(torch.arange(150)), 60, Seed(0))
DESIGN = FederationDesign(2, 1, 1, 2, 1, (30, 30), (0.1,) * 10)
KNOWN = Knowledge(10, BUILD, recipe=MANY_STEPS)
FEDERATIONS = [draw_federation(DESIGN, POOL, number, Seed(1)) for number in range(2)]


def rounds_of(known: Knowledge = KNOWN, design: FederationDesign = DESIGN):
    return list(run_simulated_federations(design, FEDERATIONS, POOL.examples, known, BUILD))


def test_each_round_is_that_of_a_federation_of_these_clients() -> None:
    first, second = rounds_of()
    federation = FEDERATIONS[1]
    start = initial_weights(BUILD, federation.seed.child("initial"))
    assert torch.equal(first.broadcasts[1]["1.weight"], start["1.weight"])
    trained = list(
        train_cohort(
            BUILD,
            start,
            POOL.examples,
            [ClientTask(f"client/{k}", federation.rows[0][k]) for k in range(2)],
            MANY_STEPS,
            seed=federation.seed,
            round=0,
            engine="sequential",
        )
    )
    for name, weight in trained[1].delta.items():
        assert torch.allclose(first.target_deltas[1][name], weight, atol=1e-4)
    mean = mean_update([Update(one.delta, 30) for one in trained]).delta
    expected = apply_update(start, mean)
    for name, weight in second.broadcasts[1].items():
        assert torch.allclose(weight, expected[name], atol=1e-4)


def test_a_given_start_is_that_of_every_federation() -> None:
    start = initial_weights(BUILD, Seed(9))
    first = rounds_of(design=replace(DESIGN, start=start))[0]
    assert all(one["1.weight"] is start["1.weight"] for one in first.broadcasts)


def test_known_defenses_act_on_simulated_clients() -> None:
    plain, noisy = rounds_of()[0], rounds_of(replace(KNOWN, defenses=(Noise(1.0),)))[0]
    moved = noisy.target_deltas[0]["1.weight"] - plain.target_deltas[0]["1.weight"]
    assert float(moved.std()) > 0.5


def test_clients_follow_their_own_control_variates() -> None:
    """Full batches and one step: an update is -r times the gradient, plus its correction."""
    recipe = Recipe(rate=0.1, epochs=1, batch=30)
    known = replace(KNOWN, recipe=recipe, algorithm=Scaffold())
    plain = rounds_of(known)
    sent = rounds_of(known, replace(DESIGN, is_plain=False))
    for federation in FEDERATIONS:
        place = FEDERATIONS.index(federation)
        # In round 0 all variates are 0.
        assert torch.equal(
            plain[0].target_deltas[place]["1.bias"], sent[0].target_deltas[place]["1.bias"]
        )
        firsts, seconds = (
            list(
                train_cohort(
                    BUILD,
                    plain[number].broadcasts[place],
                    POOL.examples,
                    [ClientTask(f"client/{k}", federation.rows[number][k]) for k in range(2)],
                    recipe,
                    seed=federation.seed,
                    round=number,
                )
            )
            for number in (0, 1)
        )
        own = [one.delta["1.bias"] / -0.1 for one in firsts]
        correction = (own[0] + own[1]) / 2 - own[1]
        expected = seconds[1].delta["1.bias"]
        close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-6)
        close(plain[1].target_deltas[place]["1.bias"], expected)
        close(sent[1].target_deltas[place]["1.bias"], expected - 0.1 * correction)
