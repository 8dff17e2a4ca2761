"""Steps of the server."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from overheard.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.fed_buff import FedBuff
from overheard.algorithms.fed_nova import FedNova
from overheard.archive.reader import open_transcript
from overheard.core.algorithm.algorithm import (
    LOCAL_STEPS,
    Algorithm,
    ReceivedUpdate,
    ServerState,
)
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Update, weighted_sum
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.cohort import round_schedule
from overheard.federation.federation import Federation
from overheard.federation.run import run
from tests.algorithms.by_hand import received, track
from tests.algorithms.test_every_algorithm import federation

MEANS = [0.5, -0.25, 0.125]


def test_fed_avg_adds_the_mean_times_its_rate() -> None:
    assert track(FedAvg(), MEANS, 1.0) == [1.5, 1.25, 1.375]
    assert track(FedAvg(rate=2.0), MEANS, 1.0) == [2.0, 1.5, 1.75]


def test_fed_avg_m_adds_a_decaying_sum_of_means() -> None:
    # v = 0.5; 0.5 * 0.5 - 0.25 = 0; 0.5 * 0 + 0.125 = 0.125; each step is 2 v.
    assert track(FedAvgM(rate=2.0, momentum=0.5), MEANS) == [1.0, 1.0, 1.25]


@pytest.mark.parametrize("tau", [1e-3, 0.1])
@pytest.mark.parametrize("kind", ["adam", "yogi", "adagrad"])
def test_adaptive_steps_equal_the_paper_in_float64(kind: str, tau: float) -> None:
    """Reddi et al. 2021, Algorithm 2, with v(-1) = tau^2."""
    draws = np.random.default_rng(1).normal(size=20)
    m, v, w, expected = 0.0, tau**2, 0.0, []
    for delta in draws:
        m = (0.0 if kind == "adagrad" else 0.9) * m + (
            1.0 if kind == "adagrad" else 0.1
        ) * delta
        if kind == "adagrad":
            v = v + delta**2
        elif kind == "yogi":
            v = v - 0.01 * delta**2 * np.sign(v - delta**2)
        else:
            v = 0.99 * v + 0.01 * delta**2
        w = w + 0.3 * m / (np.sqrt(v) + tau)
        expected.append(w)
    ours: Mapping[str, Algorithm] = {
        "adam": FedAdam(0.3, tau=tau, bias_correction=False, first_square=tau**2),
        "yogi": FedYogi(0.3, tau=tau, first_square=tau**2),
        "adagrad": FedAdagrad(0.3, tau=tau, first_square=tau**2),
    }
    assert track(ours[kind], draws.tolist()) == pytest.approx(expected, abs=1e-12)


# Any: Flower is an optional dependency.
def flower_strategies() -> list[tuple[Algorithm, Callable[[Any], Any]]]:
    """Our algorithms, and how to build the strategy of Flower with the same settings."""
    return [
        (FedAvg(), lambda s: s.FedAvg()),
        (FedAvgM(0.5, 0.8), lambda s: s.FedAvgM(server_learning_rate=0.5, server_momentum=0.8)),
        (FedAvgM(), lambda s: s.FedAvgM(server_momentum=0.9)),
        (FedAdam(), lambda s: s.FedAdam()),
        (
            FedAdam(0.02, beta_1=0.8, beta_2=0.95, tau=1e-2),
            lambda s: s.FedAdam(eta=0.02, beta_1=0.8, beta_2=0.95, tau=1e-2),
        ),
        (FedYogi(), lambda s: s.FedYogi()),
        (FedAdagrad(), lambda s: s.FedAdagrad()),
    ]


@pytest.mark.parametrize(("algorithm", "build"), flower_strategies())
def test_the_step_equals_flowers_own_on_the_same_updates(
    algorithm: Algorithm, build: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flwr")
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import strategy as strategies
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)

    class Nodes:
        """A grid with two nodes, which nobody asks for anything."""

        def get_node_ids(self) -> list[int]:
            return [1, 2]

    def record(weights: Mapping[str, torch.Tensor]) -> Any:
        return ArrayRecord({name: Array(one.numpy()) for name, one in weights.items()})

    strategy, draw = build(strategies), torch.Generator().manual_seed(2)
    # In float32 the two would differ by the rounding of Flower's models, which Adagrad's first
    # steps magnify.
    start = {
        name: torch.randn(shape, generator=draw, dtype=torch.float64)
        for name, shape in (("a", (4, 3)), ("b", (3,)))
    }
    state, flowers, sizes = ServerState(start), record(start), (3, 5)
    for number in range(4):
        sent = list(strategy.configure_train(number + 1, flowers, ConfigRecord(), Nodes()))
        before = {name: torch.tensor(one.numpy()) for name, one in flowers.items()}
        replies, updates = [], []
        for place, (message, size) in enumerate(zip(sent, sizes, strict=True)):
            delta = {
                name: 0.1 * torch.randn(one.shape, generator=draw, dtype=torch.float64)
                for name, one in start.items()
            }
            after = {name: before[name] + one for name, one in delta.items()}
            metrics = MetricRecord({"num-examples": size})
            replies.append(
                Message(RecordDict({"arrays": record(after), "m": metrics}), reply_to=message)
            )
            updates.append(ReceivedUpdate(client(place), Update(delta, size)))
        flowers, _ = strategy.aggregate_train(number + 1, replies)
        mean = weighted_sum([one.update.delta for one in updates], algorithm.factors(updates))
        state = algorithm.next_state(number, state, mean, updates)
        for name, one in flowers.items():
            assert np.abs(one.numpy() - state.weights[name].numpy()).max() < 1e-6


SGD = Recipe(rate=0.1, epochs=1, batch=1)


def reported(update: ReceivedUpdate, steps: float) -> ReceivedUpdate:
    """The update with its number of local steps."""
    return replace(update, update=replace(update.update, metrics={LOCAL_STEPS: float(steps)}))


def test_updates_are_divided_by_their_steps_and_multiplied_by_the_mean_steps() -> None:
    one, other = received(1.0, 1.0, sizes=(1, 3))
    # p = 1/4, 3/4; a = 2, 6; mean a = 0.5 + 4.5 = 5; factors p a_mean / a.
    factors = FedNova().factors((reported(one, 2), reported(other, 6)))
    assert factors == pytest.approx((0.25 * 5 / 2, 0.75 * 5 / 6))


def test_momentum_lengthens_the_reported_steps() -> None:
    # Two steps with momentum 1/2: the first gradient counts 1 + 1/2, the second 1.
    momentum = replace(SGD, momentum=0.5)
    assert FedNova().reported_steps(SGD, 2) == 2
    assert FedNova().reported_steps(momentum, 2) == pytest.approx(2.5)


def test_refuses_other_optimizers_and_masked_updates() -> None:
    adam = replace(SGD, optimizer="adam")
    assert FedNova().conflict(SGD, ()) == ""
    assert "adam" in FedNova().conflict(adam, ())
    assert "secure_aggregation" in FedNova().conflict(SGD, (SecureAggregation(),))


def test_refuses_updates_without_their_steps() -> None:
    with pytest.raises(PlanError, match="local_steps"):
        FedNova().factors(received(1.0))


BUFF = FedBuff(buffer=2, concurrency=4)


@pytest.fixture(scope="module")
def planned() -> Federation:
    """Six clients in eight rounds, four of them at a time."""
    four = federation(BUFF)
    return replace(four, rounds=8, rows=[four.rows[0]] * 8)


def test_no_client_starts_while_it_trains_and_each_step_uses_a_full_buffer() -> None:
    schedule = BUFF.schedule(6, 40, Seed(1))
    running = set[int]()
    for number, starting in enumerate(schedule.starts):
        assert not running & set(starting)
        running |= set(starting)
        assert len(running) == 4
        done = [index for (_, index), step in schedule.steps.items() if step == number]
        assert len(done) == 2
        running -= set(done)
    delays = Counter(step - start for (start, _), step in schedule.steps.items())
    assert set(delays) >= {0, 1, 2, 3}


def test_late_updates_count_less() -> None:
    one, other = received(1.0, 1.0)
    late = (one, replace(other, delay=3))
    assert BUFF.factors(late) == pytest.approx((0.5, 0.5 / sqrt(4)))
    assert replace(BUFF, discount=False).factors(late) == (0.5, 0.5)


def test_each_model_is_the_one_before_plus_the_updates_that_arrived(
    planned: Federation, tmp_path: Path
) -> None:
    run(planned, tmp_path)
    transcript = open_transcript(tmp_path)
    schedule = round_schedule(planned)
    assert schedule is not None
    models = {
        message.round: message.body.weights
        for message in transcript.messages
        if isinstance(message.body, Broadcast)
    }
    name = next(iter(models[0]))
    for number in range(8):
        arrived = [
            (number - message.round, message.body.delta[name])
            for message in transcript.messages
            if isinstance(message.body, Update)
            and schedule.steps[message.round, int(message.sender[7:])] == number
        ]
        assert len(arrived) == 2
        step = sum(delta / 2 / sqrt(1 + delay) for delay, delta in arrived)
        assert torch.allclose(models[number + 1][name], models[number][name] + step, atol=1e-6)


def test_the_server_finds_every_update_in_the_round_of_its_broadcast(
    planned: Federation, tmp_path: Path
) -> None:
    """Under FedAvg's name for the same start, the update is the same."""
    transcript, truth = run(planned, tmp_path / "async")
    whole, _ = run(replace(planned, algorithm=FedAvg()), tmp_path / "sync")
    first = transcript.seen_by(SERVER)
    for party in first.senders():
        updates = first.updates(party)
        if 0 in updates:
            expected = whole.seen_by(SERVER).updates(party)[0].delta
            assert all(torch.equal(updates[0].delta[n], expected[n]) for n in expected)
    sent = {(m.round, m.sender) for m in transcript.messages if isinstance(m.body, Update)}
    assert set(truth.facts.need(LabelCounts).counts) == sent


def test_refuses_masks_and_a_share_of_clients(planned: Federation) -> None:
    with pytest.raises(PlanError, match="several rounds"):
        replace(planned, defenses=(SecureAggregation(),))
    with pytest.raises(PlanError, match="participation"):
        replace(planned, participation=0.5)
