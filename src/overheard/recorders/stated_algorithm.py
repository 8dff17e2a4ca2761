"""The algorithm of a run, by the class of Flower's strategy or of NVFlare's controller."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from overheard.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.fed_prox import FedProx
from overheard.algorithms.scaffold import Scaffold
from overheard.core.algorithm.algorithm import Algorithm

FRAMEWORKS = ("flwr", "nvflare")
"""Packages whose classes are known. A class of the app's own may do anything."""

WRAPPERS = (
    "DifferentialPrivacyClientSideAdaptiveClipping",
    "DifferentialPrivacyClientSideFixedClipping",
    "DifferentialPrivacyServerSideAdaptiveClipping",
    "DifferentialPrivacyServerSideFixedClipping",
)
"""Strategies of Flower that add a defense to another one."""

# Any: a class of a framework that need not be installed.
_READERS: Mapping[str, Callable[[Any], Algorithm]] = MappingProxyType(
    {
        "FedAvg": lambda one: FedAvg(),
        "FedProx": lambda one: FedProx(mu=float(one.proximal_mu)),
        "FedAvgM": lambda one: FedAvgM(
            rate=float(one.server_learning_rate), momentum=float(one.server_momentum)
        ),
        "FedAdam": lambda one: FedAdam(
            rate=float(one.eta),
            beta_1=float(one.beta_1),
            beta_2=float(one.beta_2),
            tau=float(one.tau),
        ),
        "FedYogi": lambda one: FedYogi(
            rate=float(one.eta),
            beta_1=float(one.beta_1),
            beta_2=float(one.beta_2),
            tau=float(one.tau),
        ),
        "FedAdagrad": lambda one: FedAdagrad(rate=float(one.eta), tau=float(one.tau)),
        "Scaffold": lambda one: Scaffold(),
        "ScatterAndGatherScaffold": lambda one: Scaffold(),
    }
)
"""By the name of a class, a function that reads the algorithm with its settings."""


def describe_algorithm(strategy: object) -> str:
    """Return the algorithm of a strategy or controller with its settings, as text.

    "" = it is unknown: the class is not one of the framework's own that are listed here.
    """
    algorithm = _read_algorithm(strategy)
    return "" if algorithm is None else repr(algorithm)


def adds_mean(strategy: object) -> bool:
    """Return whether the server adds the mean update to the model; True if it is unknown."""
    algorithm = _read_algorithm(strategy)
    return algorithm is None or algorithm.adds_mean


def _read_algorithm(strategy: object) -> Algorithm | None:
    """Return the algorithm of a strategy or controller; None = it is unknown."""
    kind = type(strategy)
    if kind.__module__.partition(".")[0] not in FRAMEWORKS:
        return None
    try:
        if kind.__name__ in WRAPPERS:
            wrapped: Any = strategy
            return _read_algorithm(wrapped.strategy)
        read = _READERS.get(kind.__name__)
        return None if read is None else read(strategy)
    # The attributes of another version, or settings that the algorithm refuses.
    except (AttributeError, TypeError, ValueError):
        return None
