"""SecAgg+ of Flower is recorded as what the server reads: a mean of a cohort in each round."""

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.client import ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import ndarrays_to_parameters
from flwr.server import LegacyContext, ServerConfig
from flwr.server.strategy import FedAdam, FedAvg, Strategy
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import Grid

from overheard.core.messages import Aggregate, Broadcast, UnstoredMessage, Update
from overheard.core.messages import Message as TranscriptMessage
from overheard.core.parties import COHORT, SERVER
from overheard.recorders.flower import RecordingGrid, recording_mod
from overheard.recorders.flower_strategy import RecordingStrategy
from overheard.report.show import show
from tests.recorders.test_flower import Nodes, a_run, read_messages, record_of

__all__ = ["a_run"]  # a fixture that every test here uses

START = [np.zeros((3, 2), np.float32), np.zeros(3, np.float32)]
NODES = {101: 0, 102: 1, 103: 2}
PARTIES = {f"client/{node}" for node in NODES}

# The mean of 1, 2, 3 with the weights 10, 20, 30.
MEAN = 14 / 6


class Site(NumPyClient):
    """Moves all weights by its number, and tells its name."""

    def __init__(self, number: int) -> None:
        self.number = number

    def fit(self, parameters: list[np.ndarray], config: object) -> tuple:
        size = 10 * (self.number + 1)
        return [one + self.number + 1 for one in parameters], size, {"hospital": "St. Mary"}


class OneProcess(Grid):
    """Hands each message to a client within this process."""

    def __init__(self, mods: Sequence[object] = (secaggplus_mod,)) -> None:
        self.sent = 0
        self.app = ClientApp(
            client_fn=lambda context: Site(context.node_config["partition-id"]).to_client(),
            mods=list(mods),
        )
        self.contexts = {
            node: Context(1, node, {"partition-id": number}, RecordDict(), {})
            for node, number in NODES.items()
        }

    run = property(lambda self: SimpleNamespace(run_id=1))

    def set_run(self, run_id: object) -> None:
        raise NotImplementedError

    def create_message(self, *arguments: object, **named: object) -> Message:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(NODES)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        replies = []
        for one in messages:
            self.sent += 1
            one.metadata.__dict__["_message_id"] = f"m{self.sent}"
            there = copy.deepcopy(one)
            there.metadata.__dict__.update(one.metadata.__dict__)
            replies.append(self.app(there, self.contexts[one.metadata.dst_node_id]))
        return replies


def run(strategy: Strategy, grid: Grid) -> None:
    """Run two rounds of SecAgg+."""
    context = LegacyContext(
        context=Context(1, 0, {}, RecordDict(), {}),
        config=ServerConfig(num_rounds=2),
        strategy=strategy,
    )
    workflow = SecAggPlusWorkflow(num_shares=3, reconstruction_threshold=2)
    DefaultWorkflow(fit_workflow=workflow)(grid, context)


def fedavg() -> FedAvg:
    start = ndarrays_to_parameters(START)
    return FedAvg(
        min_fit_clients=3,
        min_available_clients=3,
        fraction_evaluate=0,
        initial_parameters=start,
    )


def check_first_round(messages: Sequence[TranscriptMessage]) -> None:
    """Check that the server reads the mean of the first round, its cohort and metadata."""
    assert not any(isinstance(one.body, Update) for one in messages)
    first = [one for one in messages if one.round == 0]
    assert [type(one.body) for one in first] == [
        Broadcast, *[UnstoredMessage] * 3, Aggregate
    ]  # fmt: skip
    replies = {one.sender: one for one in first[1:4]}
    assert replies.keys() == PARTIES
    one = replies["client/102"]
    assert one.readers == {SERVER}
    assert (one.body.kind, one.body.examples, one.body.texts) == ("masked", 20, ("hospital",))
    mean = first[-1]
    assert (mean.sender, mean.readers) == (COHORT, {SERVER})
    assert (mean.body.cohort, mean.body.examples) == (PARTIES, 60)
    for delta in mean.body.delta.values():
        assert torch.allclose(delta.float(), torch.tensor(MEAN), atol=1e-3)


def test_a_strategy_records_the_mean_in_place_of_updates(tmp_path: Path) -> None:
    strategy = RecordingStrategy(fedavg(), tmp_path)
    run(strategy, OneProcess())
    strategy.finish()
    messages = read_messages(tmp_path)
    check_first_round(messages)
    assert [one.round for one in messages if isinstance(one.body, Aggregate)] == [0, 1]
    readers = show(tmp_path).readers
    assert "No party can read another party's individual updates." in readers
    assert "server reads the mean update of 3 parties in 2 rounds." in readers


def test_a_grid_records_two_rounds_and_not_the_stages_of_the_protocol(tmp_path: Path) -> None:
    grid = RecordingGrid(OneProcess(), tmp_path)
    run(fedavg(), grid)
    grid.finish()
    messages = read_messages(tmp_path)
    check_first_round(messages)
    assert {one.round for one in messages} == {0, 1}
    # No next model tells the mean of the last round.
    assert [one.round for one in messages if isinstance(one.body, Aggregate)] == [0]
    broadcast = messages[0].body
    # Keys and shares are no configuration of the app.
    assert dict(broadcast.config) == {}


def test_the_mean_of_a_server_that_does_not_add_it_is_not_taken_from_its_models(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start = ndarrays_to_parameters(START)
    adam = FedAdam(min_fit_clients=3, fraction_evaluate=0, initial_parameters=start)
    grid = RecordingGrid(OneProcess(), tmp_path / "grid", strategy=adam)
    run(adam, grid)
    grid.finish()
    bodies = [one.body for one in read_messages(tmp_path / "grid")]
    assert not any(isinstance(one, Aggregate | Update) for one in bodies)
    assert "the mean is not recorded" in caplog.text
    # The strategy is handed the mean itself.
    adam = FedAdam(min_fit_clients=3, fraction_evaluate=0, initial_parameters=start)
    strategy = RecordingStrategy(adam, tmp_path / "strategy")
    run(strategy, OneProcess())
    strategy.finish()
    check_first_round(read_messages(tmp_path / "strategy"))


class Changed(FedAvg):
    """Does not use the replies."""

    def aggregate_fit(self, server_round: int, results: list, failures: list) -> tuple:
        return ndarrays_to_parameters([one + 7 for one in START]), {}


def test_one_object_that_does_not_lead_to_the_next_model_is_no_mean(tmp_path: Path) -> None:
    start = ndarrays_to_parameters(START)
    strategy = RecordingStrategy(
        Changed(min_fit_clients=3, fraction_evaluate=0, initial_parameters=start), tmp_path
    )
    run(strategy, OneProcess())
    strategy.finish()
    bodies = [one.body for one in read_messages(tmp_path)]
    assert not any(isinstance(one, Aggregate | Update) for one in bodies)
    reasons = {one.reason for one in bodies if isinstance(one, UnstoredMessage)}
    assert any("does not lead to the next model" in one for one in reasons)


@pytest.mark.parametrize("is_outside", [True, False])
def test_at_a_client_no_update_is_readable_by_the_server(
    tmp_path: Path, is_outside: bool
) -> None:
    recorder = recording_mod(tmp_path)
    mods = [recorder, secaggplus_mod] if is_outside else [secaggplus_mod, recorder]
    run(fedavg(), OneProcess(mods))
    messages = read_messages(tmp_path / "run-1-node-102")
    assert [type(one.body) for one in messages] == [
        Broadcast, UnstoredMessage if is_outside else Update
    ] * 2  # fmt: skip
    if not is_outside:
        assert messages[1].readers == frozenset()
        assert bool((messages[1].body.delta["0"] == 2).all())


def test_a_client_cannot_hide_its_reply_by_calling_it_masked(tmp_path: Path) -> None:
    def claim(message: Message) -> Message:
        arrays = message.content["arrays"]
        keys = ConfigRecord({"masked_params": [b"x"]})
        moved = record_of({name: one.numpy() + 1 for name, one in arrays.items()})
        return Message(
            RecordDict({"arrays": moved, "secaggplus_configs": keys}), reply_to=message
        )

    def claim_keys(message: Message) -> Message:
        keys = ConfigRecord({"pk1": b"x"})
        return Message(RecordDict({"secaggplus_configs": keys}), reply_to=message)

    for name, answer, kind in (("a", claim, Update), ("b", claim_keys, UnstoredMessage)):
        with RecordingGrid(Nodes(answer), tmp_path / name) as grid:
            content = RecordDict({"arrays": record_of({"w": START[0]})})
            list(grid.send_and_receive([Message(content, node, "train") for node in NODES]))
        replies = [one for one in read_messages(tmp_path / name) if one.sender != SERVER]
        assert [type(one.body) for one in replies] == [kind] * 3
        assert all(one.readers == {SERVER} for one in replies)
        assert not any(getattr(one.body, "kind", "") == "masked" for one in replies)
