"""Hostile replies to a strategy of Flower's older API, by kind, and how each must be listed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.common import (
    Code,
    EvaluateIns,
    FitIns,
    FitRes,
    Parameters,
    Status,
    ndarrays_to_parameters,
)
from flwr.server.strategy import Strategy

from overheard.recorders.flower_strategy import RecordingStrategy
from tests.hostile.flower_replies import (
    FIRST_HOSTILE,
    HONEST,
    Outcome,
    Raising,
    as_server,
    ask,
    flower_replies,
    model_of,
)

OK = Status(Code.OK, "")

HAVE_NO_PLACE = (
    *("names of tensors", "long names of tensors", "some tensors", "many records"),
    *("records at", "records of arrays"),
    *("no content", "two replies", "keys of", "content that", "error with", "reply to", "id "),
    *("time ", "another kind of message", "kind that"),
)
"""Beginnings of kinds that the older API has no place for: names of tensors, and metadata."""


@dataclass(frozen=True, slots=True)
class StrategyReply:
    """A kind of hostile reply.

    Args:
        result: the `FitRes`.
        outcome: how a recording must list it.
        is_failure: whether Flower passes it on as a failure.

    """

    result: Any
    outcome: Outcome = "unrecorded"
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """What the recorder asks of a client: its id."""

    cid: str


class KeepingStrategy(Strategy):
    """A strategy that asks all clients, and keeps its model."""

    def initialize_parameters(self, client_manager: object) -> None:
        return None

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: Any
    ) -> Any:
        return [(one, FitIns(parameters, {})) for one in client_manager]

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: Any
    ) -> Any:
        return [(one, EvaluateIns(parameters, {})) for one in client_manager]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        return None, {}

    def aggregate_evaluate(self, server_round: int, results: Any, failures: Any) -> Any:
        return None, {}

    def evaluate(self, server_round: int, parameters: Parameters) -> None:
        return None


def strategy_replies(scale: int) -> dict[str, StrategyReply]:
    """Return all kinds, with up to `scale` entries, characters and digits in each reply."""
    model = model_of(1000)
    honest = ndarrays_to_parameters(list(model.values()))
    kinds = {}
    with as_server():
        (request,) = ask([FIRST_HOSTILE], model, 0)
        for name, kind in flower_replies(scale).items():
            if not name.startswith(HAVE_NO_PLACE):
                (reply,) = kind.make(request, model)
                kinds[name] = StrategyReply(as_result(reply.content), kind.outcome)

    def with_parameters(name: str, parameters: object) -> None:
        kinds[name] = StrategyReply(FitRes(OK, parameters, 10, {}))

    def with_metrics(name: str, metrics: object, outcome: Outcome = "unrecorded") -> None:
        kinds[name] = StrategyReply(FitRes(OK, honest, 10, metrics), outcome)

    with_parameters("no parameters", None)
    with_parameters("no tensors", Parameters([], ""))
    with_parameters("fewer tensors", Parameters(honest.tensors[:3], honest.tensor_type))
    with_parameters("tensors in a tuple", Parameters(tuple(honest.tensors), honest.tensor_type))
    with_parameters("tensors that are none", Parameters([None] * 10, honest.tensor_type))
    with_parameters("tensors of no type", Parameters(honest.tensors, None))
    with_metrics("no metrics", None, "recorded")
    with_metrics("metrics in a list", [("loss", 0.5)] * scale)
    with_metrics("names that are no texts", {1: 0.5, (2,): 0.5, None: 0.5}, "recorded")
    kinds["reply that raises"] = StrategyReply(Raising())
    failed = FitRes(Status(Code.FIT_NOT_IMPLEMENTED, "x" * scale), honest, 10, {})
    kinds["failure with tensors"] = StrategyReply(failed, is_failure=True)
    kinds["failure that raises"] = StrategyReply(Raising(), is_failure=True)
    other = FitRes(Status("../\x1b", None), honest, 10, {})
    kinds["status of no kind"] = StrategyReply(other, is_failure=True)
    return kinds


def as_result(content: Mapping[str, Any]) -> FitRes:
    """Return the content of a message as a reply of the older API."""
    arrays, metrics, config = (
        dict(vars(content[name])["_data"]) for name in ("arrays", "metrics", "config")
    )
    parameters = Parameters(
        [one.data for one in arrays.values()], next(iter(arrays.values())).stype
    )
    return FitRes(OK, parameters, metrics.pop("num-examples", 10), metrics | config)


def record_run(folder: Path, kinds: Sequence[StrategyReply], rounds: int) -> RecordingStrategy:
    """Record a run of honest clients and one for each kind; return its strategy."""
    model = model_of(1000)
    start = ndarrays_to_parameters(list(model.values()))
    strategy = RecordingStrategy(KeepingStrategy(), folder)
    honest = {Client(str(number)): number for number in HONEST}
    hostile = {Client(str(FIRST_HOSTILE + place)): one for place, one in enumerate(kinds)}
    for number in range(rounds):
        strategy.configure_fit(number, start, [*honest, *hostile])
        results = [(one, kind.result) for one, kind in hostile.items() if not kind.is_failure]
        for client in honest:
            trained = ndarrays_to_parameters([one + 1 for one in model.values()])
            results.append((client, FitRes(OK, trained, 10, {})))
        failures = [(one, kind.result) for one, kind in hostile.items() if kind.is_failure]
        strategy.aggregate_fit(number, results, failures)
    strategy.finish()
    return strategy


def seconds_of_reply(folder: Path, kind: StrategyReply) -> float:
    """Return the seconds of the server's thread to record one reply, the best of 3."""
    start = ndarrays_to_parameters(list(model_of(1000).values()))
    taken = []
    for number in range(3):
        strategy = RecordingStrategy(KeepingStrategy(), folder / str(number))
        hostile = Client(str(FIRST_HOSTILE))
        strategy.configure_fit(1, start, [hostile])
        replies = [(hostile, kind.result)]
        results, failures = ([], replies) if kind.is_failure else (replies, [])
        begin = thread_time()
        strategy.aggregate_fit(1, results, failures)
        taken.append(thread_time() - begin)
        strategy.finish()
    return min(taken)
