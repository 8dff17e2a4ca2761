"""The epsilon of a client by canary clients, on a Gaussian mechanism whose epsilon is known."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch

from overheard.core.accounting.accountant import gaussian_epsilon
from overheard.core.algorithm.canary_direction import draw_canary_direction
from overheard.core.messages import Broadcast, Message, Update, Weights
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.iid import Iid
from overheard.defenses.canary_clients import CanaryClients
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.epsilon.canary_cosines import read_canary_scores
from overheard.epsilon.client_estimate import (
    ClientEpsilonEstimate,
    estimate_client_epsilon,
    expected_interval,
)
from overheard.epsilon.client_estimate_table import client_estimate_blocks
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.privacy.canary_scores import CanaryScores
from overheard.learning.models.mlp import Mlp
from overheard.planning.planned_estimates import describe_planned_estimates
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.report.exports import epsilon_row
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding

DELTA = 1e-5
CANARIES, OTHERS, ROUNDS = 60, 20, 4
LIKE = {"a": torch.zeros(30, 40), "b": torch.zeros(300)}


def released(noise: float, seed: int, moves: float = 1.0) -> tuple[CanaryScores, ...]:
    """Return the scores of canaries in sums with noise, beside clients that send one update.

    All of these are alike, so that together they are larger than the noise of the first runs.
    """
    torch.manual_seed(seed)
    seeds = {client(number): 1000 * seed + number for number in range(CANARIES)}
    sent = {one: draw_canary_direction(LIKE, Seed(value)) for one, value in seeds.items()}
    common = draw_canary_direction(LIKE, Seed(7))
    sent |= {client(CANARIES + number): common for number in range(OTHERS)}
    model: Weights = {name: torch.zeros_like(one) for name, one in LIKE.items()}
    messages = []
    for number in range(ROUNDS + 1):
        messages.append(Message(number, SERVER, frozenset(sent), Broadcast(model)))
        if number == ROUNDS:
            break
        messages += [
            Message(number, one, frozenset({SERVER}), Update(delta, 1, {}))
            for one, delta in sent.items()
        ]
        model = {
            name: one
            + sum(moves * delta[name] for delta in sent.values())
            + noise * torch.randn_like(one)
            for name, one in model.items()
        }
    transcript = Transcript(tuple(messages))
    return read_canary_scores(transcript, CanaryDirections(seeds), Seed(seed))


def estimate(runs: list[CanaryScores], moves: float = 1.0) -> ClientEpsilonEstimate:
    found = estimate_client_epsilon(runs, DELTA, moves)
    assert found is not None
    return found


def test_the_estimate_is_that_of_the_noise_over_all_rounds() -> None:
    # mu = sqrt(4) / 1.5; the clients that are alike would halve a plain cosine.
    noise = 1.5
    truth = gaussian_epsilon(noise / sqrt(ROUNDS), 1, DELTA)
    runs = [released(noise, seed) for seed in range(4)]
    together = estimate([run[0] for run in runs])
    assert together.canaries == 4 * CANARIES
    assert together.epsilon.low is not None
    assert together.epsilon.high is not None
    assert together.epsilon.low < truth < together.epsilon.high
    assert together.epsilon.mean == pytest.approx(truth, rel=0.1)
    assert 0 < together.lower < truth
    assert not together.is_doubted
    # One round alone shows less; the updates, which have no noise here, show everything.
    assert 0 < estimate([run[1] for run in runs]).epsilon.mean < truth
    assert estimate([run[2] for run in runs]).epsilon.mean > 500
    # A client that is replaced by another moves the sum by two clips.
    twice = gaussian_epsilon(noise / sqrt(ROUNDS) / 2, 1, DELTA)
    assert estimate([run[0] for run in runs], 2.0).epsilon.mean == pytest.approx(twice, rel=0.1)


def test_canaries_that_nobody_adds_show_nothing() -> None:
    runs = [released(1.0, seed, moves=0.0) for seed in range(3)]
    for place in (0, 1):
        found = estimate([run[place] for run in runs])
        assert found.epsilon.low == 0.0
        assert abs(found.mu) < 3 / sqrt(found.canaries)
        assert found.lower < 1.5
        # Larger scores have fewer false alarms, and half of the null lies above its median.
        alarms = [alarm for run in runs for alarm in run[place].false_alarms]
        assert 0.35 < np.median(alarms) < 0.65


def test_scores_that_vary_otherwise_are_doubted() -> None:
    scores = tuple(np.linspace(-4, 6, 40).tolist())
    found = estimate([CanaryScores("own updates", scores, (0.5,) * 40, 100, 1)])
    assert found.is_doubted
    assert (
        estimate_client_epsilon([CanaryScores("best round", (1.0,), (0.1,), 9, 1)], 0.1) is None
    )


def test_the_interval_is_known_before_the_run() -> None:
    # mu of epsilon 1 is .268, and 30 scores have a deviation of .183.
    few, many = (expected_interval(1.0, number, DELTA) for number in (30, 1000))
    assert few.low == 0.0
    assert few.high is not None
    assert 2.4 < few.high < 2.6
    assert many.low is not None
    assert many.high is not None
    assert 0.7 < many.low < 0.8
    assert 1.2 < many.high < 1.3


def test_each_observer_is_told_what_it_can_read() -> None:
    sign = CanaryScores("own updates", (3.0,) * 50, (0.001,) * 50, 100, 1)
    scores = (replace(sign, evidence="all rounds together", scores=(1.0,) * 50), sign)
    audited = audit_of(replace(LOCAL, moves=1.0), noisy_finding(1.0, members=2, outsiders=2))
    bare, noisy = audited.arms
    audited = replace(audited, arms=(bare, replace(noisy, canary_scores=scores)))
    server, readers = epsilon_results(audited)
    assert [one.evidence for one in server.estimates] == ["own updates"]
    assert [one.evidence for one in readers.estimates] == ["all rounds together"]
    row = epsilon_row(server).estimated[0]
    assert row.epsilon.mean == pytest.approx(gaussian_epsilon(1 / 3, 1, DELTA))
    (block,) = client_estimate_blocks((server,))
    assert block.tables[0].rows[0][6] == "50"
    # Noise that the server adds covers others alone; records have no canary clients.
    central = DpFedavg().mechanism()
    for mechanism, read in (
        (central, [(), ("all rounds together",)]),
        (replace(LOCAL, unit="record"), [(), ()]),
    ):
        audited = audit_of(mechanism)
        bare, noisy = audited.arms
        audited = replace(audited, arms=(bare, replace(noisy, canary_scores=scores)))
        lines = epsilon_results(audited)
        assert [tuple(one.evidence for one in line.estimates) for line in lines] == read


def test_a_plan_states_the_interval_and_the_share_of_canaries() -> None:
    canaries = (CanaryClients(30), DpFedavg(1.0, 4.0))
    plan = Plan(
        seeds=(1, 2),
        data=DataPlan(source=Mnist(shrink=2), split=Iid(), clients=300, examples=20),
        training=TrainingPlan(model=Mlp((32,)), rounds=3, rate=0.1),
        arms=(
            ArmPlan(name="plain", defenses=(DpFedavg(),)),
            ArmPlan(name="measured", defenses=canaries),
        ),
        threats=(ThreatPlan(attacks=(BiasInversion(),), knows=()),),
    )
    (sentence,) = describe_planned_estimates(plan)
    # mu = 2 sqrt(3) / 4 = .866 for a client that is replaced; 60 scores, so +- .253 twice.
    assert sentence.startswith(
        "measured: 30 canary clients in each of 2 runs, 10 % of the clients, will estimate the "
        "epsilon of a client replaced by another with a 95 % interval like 3.71 (1.38 to 6.34)"
    )


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_canaries_of_a_run_that_diverged_do_not_say_that_epsilon_is_0(score: float) -> None:
    diverged = CanaryScores("own updates", (score, 3.0, 3.0), (0.5, 0.001, 0.001), 100, 1)
    assert estimate_client_epsilon([diverged], 1e-5) is None


def test_the_interval_of_a_small_epsilon_at_a_tiny_delta_is_planned() -> None:
    assert expected_interval(0.02, 1000, 1e-300).low == 0
