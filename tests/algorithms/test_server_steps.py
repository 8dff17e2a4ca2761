"""Server steps equal the papers' formulas, worked by hand, and Flower's own strategies."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from overheard.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.core.algorithm.algorithm import Algorithm, ReceivedUpdate, ServerState
from overheard.core.messages import Update, weighted_sum
from overheard.core.parties import client
from tests.algorithms.by_hand import track

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
