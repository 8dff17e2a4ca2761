"""The class of a framework's own strategy tells the algorithm and its settings."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.common import ndarrays_to_parameters
from flwr.server import strategy as legacy
from flwr.serverapp import strategy as flower

from overheard.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.fed_prox import FedProx
from overheard.recorders.stated_algorithm import describe_algorithm

FIRST = {"initial_parameters": ndarrays_to_parameters([np.zeros(2, np.float32)])}
ADAPTIVE = {"eta": 0.3, "beta_1": 0.8, "beta_2": 0.7, "tau": 0.01}
OURS = {"rate": 0.3, "beta_1": 0.8, "beta_2": 0.7, "tau": 0.01}


@pytest.mark.parametrize(
    ("strategy", "algorithm"),
    [
        (flower.FedAvg(), FedAvg()),
        (flower.FedProx(proximal_mu=0.4), FedProx(mu=0.4)),
        (
            flower.FedAvgM(server_learning_rate=0.5, server_momentum=0.6),
            FedAvgM(rate=0.5, momentum=0.6),
        ),
        (flower.FedAdam(**ADAPTIVE), FedAdam(**OURS)),
        (flower.FedYogi(**ADAPTIVE), FedYogi(**OURS)),
        (flower.FedAdagrad(eta=0.3, tau=0.01), FedAdagrad(rate=0.3, tau=0.01)),
        (legacy.FedAvg(), FedAvg()),
        (legacy.FedProx(proximal_mu=0.4), FedProx(mu=0.4)),
        (
            legacy.FedAvgM(server_learning_rate=0.5, server_momentum=0.6),
            FedAvgM(rate=0.5, momentum=0.6),
        ),
        (legacy.FedAdam(**ADAPTIVE, **FIRST), FedAdam(**OURS)),
        (legacy.FedYogi(**ADAPTIVE, **FIRST), FedYogi(**OURS)),
        (legacy.FedAdagrad(eta=0.3, tau=0.01, **FIRST), FedAdagrad(rate=0.3, tau=0.01)),
    ],
    ids=lambda one: f"{type(one).__module__.split('.')[1]} {type(one).__name__}",
)
def test_each_strategy_of_flower_has_its_algorithm_and_settings(
    strategy: object, algorithm: object
) -> None:
    assert describe_algorithm(strategy) == repr(algorithm)


def test_a_wrapper_that_adds_a_defense_has_the_algorithm_of_what_it_wraps() -> None:
    wrapped = flower.DifferentialPrivacyServerSideFixedClipping(
        flower.FedProx(proximal_mu=0.4), 1.0, 1.0, 2
    )
    assert describe_algorithm(wrapped) == repr(FedProx(mu=0.4))


class OwnStrategy(flower.FedAvg):
    """May override anything."""


@pytest.mark.parametrize(
    "strategy",
    [
        OwnStrategy(),
        flower.FedMedian(),
        # No algorithm has a learning rate of 0.
        flower.FedAdam(eta=0.0),
        FedAvg(),
        None,
    ],
)
def test_the_algorithm_of_other_classes_is_unknown(strategy: object) -> None:
    assert describe_algorithm(strategy) == ""
