"""A wrapped strategy of Flower's older API records all that it sends and receives."""

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.common import (
    Code,
    EvaluateIns,
    EvaluateRes,
    FitIns,
    FitRes,
    Parameters,
    Status,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server import Server
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    Strategy,
)

from overheard.archive.manifest import read_manifest
from overheard.core.messages import (
    Evaluation,
    Message,
    MissingReply,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import SERVER
from overheard.core.recipe import Recipe
from overheard.recorders.flower_strategy import RecordingStrategy
from overheard.recorders.replies.reply_reading import CountUnit
from overheard.report.show import show
from tests.recorders.test_flower import Unreadable, outline, read_messages

START = [np.array([1.0, 2.0], np.float32), np.array(0.5, np.float32)]

OK = Status(Code.OK, "")


def train(proxy: "Site", asked: FitIns) -> FitRes:
    """Add the number of the site to all weights."""
    arrays = [one + proxy.number for one in parameters_to_ndarrays(asked.parameters)]
    metrics = {"loss": 0.5, "partition-id": proxy.number, "note": "x"}
    return FitRes(OK, ndarrays_to_parameters(arrays), 10 * proxy.number, metrics)


class Site(ClientProxy):
    """A client that replies within this process."""

    def __init__(self, cid: str, number: int, answer: Callable[..., FitRes] = train) -> None:
        super().__init__(cid)
        self.number, self.answer = number, answer

    def fit(self, ins: FitIns, timeout: float | None, group_id: int | None) -> FitRes:
        return self.answer(self, ins)

    def evaluate(
        self, ins: EvaluateIns, timeout: float | None, group_id: int | None
    ) -> EvaluateRes:
        return EvaluateRes(OK, 0.25, 3, {"accuracy": 0.75})

    def get_properties(self, ins: object, timeout: object, group_id: object) -> object:
        raise NotImplementedError

    def get_parameters(self, ins: object, timeout: object, group_id: object) -> object:
        raise NotImplementedError

    def reconnect(self, ins: object, timeout: object, group_id: object) -> object:
        raise NotImplementedError


SITES = (Site("11", 1), Site("a:b/c", 2), Site("15", 3))


def serve(strategy: Strategy, sites: Sequence[Site], rounds: int) -> Parameters:
    """Run a server of Flower, and return its last model."""
    manager = SimpleClientManager()
    for site in sites:
        manager.register(site)
    server = Server(client_manager=manager, strategy=strategy)
    server.fit(rounds, None)
    return server.parameters


def run(strategy: Strategy, sites: Sequence[Site] = SITES, rounds: int = 2) -> list[np.ndarray]:
    """Run a server of Flower, and return the weights of its last model."""
    return parameters_to_ndarrays(serve(strategy, sites, rounds))


def fedavg(**options: object) -> FedAvg:
    return FedAvg(
        **{
            "min_fit_clients": 3,
            "min_available_clients": 3,
            "initial_parameters": ndarrays_to_parameters(START),
            "on_fit_config_fn": lambda number: {"round": number, "rate": 0.1},
            **options,
        }
    )


def three(answer: Callable[..., FitRes]) -> list[Site]:
    return [Site(str(number), number, answer) for number in (1, 2, 3)]


def record(
    folder: Path,
    sites: Sequence[Site] = SITES,
    rounds: int = 1,
    strategy: Strategy | None = None,
    **options: object,
) -> Sequence[Message]:
    """Record a run of a strategy, FedAvg unless stated, and return its messages."""
    recording = RecordingStrategy(strategy or fedavg(), folder, **options)
    run(recording, sites, rounds)
    recording.finish()
    return read_messages(folder)


def test_records_all_that_a_strategy_sends_and_receives(tmp_path: Path):
    strategy = RecordingStrategy(fedavg(min_evaluate_clients=3), tmp_path, model="two tensors")
    learned = run(strategy)
    strategy.finish()
    assert outline(tmp_path) == [
        "0 Broadcast", *["0 Update"] * 3,
        "1 Broadcast", *["1 Evaluation"] * 3, "1 Broadcast", *["1 Update"] * 3,
        "2 Broadcast", *["2 Evaluation"] * 3,
    ]  # fmt: skip
    messages = read_messages(tmp_path)
    first = messages[0]
    assert first.body.config == {"round": "1", "rate": "0.1"}
    assert first.body.weights["0"].tolist() == [1.0, 2.0]
    assert first.times.sent is not None
    updates = {one.sender: one.body for one in messages[1:4]}
    assert first.readers == set(updates)
    one = updates["client/11"]
    assert one.delta["0"].tolist() == [1.0, 1.0]
    assert one.examples == 10
    assert one.metrics == {"loss": 0.5, "partition-id": 1.0}
    evaluation = messages[5].body
    assert isinstance(evaluation, Evaluation)
    assert evaluation.metrics == {"loss": 0.25, "accuracy": 0.75}
    assert evaluation.examples == 3
    last = messages[-4].body
    assert torch.equal(last.weights["0"], torch.tensor(learned[0]))
    manifest = read_manifest(tmp_path)
    assert manifest.model == "two tensors"
    assert manifest.framework.startswith("flwr 1.")
    assert manifest.algorithm == "FedAvg(rate=1.0, mean='examples')"
    assert set(manifest.parties) == {SERVER, *updates}


def test_an_id_that_is_no_plain_name_becomes_one(tmp_path: Path):
    (other,) = record(tmp_path)[0].readers - {"client/11", "client/15"}
    assert len(other) == len("client/") + 16
    names = (tmp_path / "node_names.json").read_text()
    assert f'"{other}": "2"' in names


def clipped() -> Strategy:
    return DifferentialPrivacyServerSideFixedClipping(fedavg(), 0.0, 1e-3, 3)


def adam() -> Strategy:
    return FedAdam(min_fit_clients=3, initial_parameters=ndarrays_to_parameters(START))


@pytest.mark.parametrize("make", [fedavg, adam, clipped])
def test_the_run_is_the_same_with_and_without_recording(
    tmp_path: Path, make: Callable[[], Strategy]
):
    alone = run(make())
    recorded = run(RecordingStrategy(make(), tmp_path))
    for before, after in zip(alone, recorded, strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-6)


def test_records_replies_before_the_strategy_changes_them(tmp_path: Path):
    bodies = [one.body for one in record(tmp_path, strategy=clipped())]
    assert {one.delta["1"].item() for one in bodies if isinstance(one, Update)} == {1, 2, 3}


def test_arrays_get_the_given_names_and_further_ones_their_position(tmp_path: Path):
    start = ndarrays_to_parameters([*START, np.zeros(3, np.float32), np.array(7)])
    names = dict(zip(("fc.weight", "fc.bias"), START, strict=True))
    strategy = fedavg(initial_parameters=start)
    body = record(tmp_path, strategy=strategy, tensors=names)[0].body
    assert list(body.weights) == ["fc.weight", "fc.bias", "2"]
    assert read_manifest(tmp_path).left_out == ("3",)


def test_the_last_model_is_recorded_if_nobody_evaluates_it(tmp_path: Path):
    learned = run(RecordingStrategy(fedavg(fraction_evaluate=0.0), tmp_path))
    gc.collect()
    assert outline(tmp_path)[-1] == "2 Broadcast"
    last = read_messages(tmp_path)[-1]
    assert not last.readers
    assert torch.equal(last.body.weights["0"], torch.tensor(learned[0]))


def fail(proxy: Site, asked: FitIns) -> FitRes:
    if proxy.number == 1:
        raise RuntimeError("patient 7")
    status = Status(Code.FIT_NOT_IMPLEMENTED, "patient 8") if proxy.number == 2 else OK
    parameters = Parameters([], "") if proxy.number == 2 else asked.parameters
    return FitRes(status, parameters, 1, {})


@pytest.mark.parametrize("keeps", [False, True])
def test_failures_are_missing_replies_without_error_texts(tmp_path: Path, keeps: bool):
    messages = record(tmp_path, three(fail), keep_error_texts=keeps)
    missing = [one for one in messages if isinstance(one.body, MissingReply)]
    assert {one.sender: one.body.reason for one in missing} == {
        "client/1": "no answer to train",
        "client/2": f"FIT_NOT_IMPLEMENTED{': patient 8' if keeps else ''}",
    }


def malformed(proxy: Site, asked: FitIns) -> FitRes:
    tensors = asked.parameters.tensors
    if proxy.number == 1:
        return FitRes(OK, Parameters(tensors[:1], "numpy.ndarray"), 1, {})
    if proxy.number == 2:
        return FitRes(OK, Parameters([b"\x80\x04N."] * 2, "numpy.ndarray"), 1, {})
    return FitRes(OK, asked.parameters, -1, {"worst": float("nan")})


def test_malformed_replies_are_not_stored_but_reach_the_strategy(tmp_path: Path):
    arrived = list[int]()

    class Counting(FedAvg):
        def aggregate_fit(self, server_round: int, results: list, failures: list) -> tuple:
            arrived.append(len(results))
            return None, {}

    start = ndarrays_to_parameters(START)
    wrapped = Counting(min_fit_clients=3, fraction_evaluate=0.0, initial_parameters=start)
    messages = record(tmp_path, three(malformed), strategy=wrapped)
    assert arrived == [3]
    bodies = {one.sender: one.body for one in messages[1:]}
    first, second, third = (bodies[f"client/{number}"] for number in (1, 2, 3))
    assert [type(first), type(second), type(third)] == [UnstoredMessage] * 2 + [Update]
    assert (third.examples, third.metrics) == (None, {"num_examples": -1.0})


def test_errors_of_the_recorder_do_not_reach_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    strategy = RecordingStrategy(fedavg(on_fit_config_fn=lambda _: Unreadable()), tmp_path)
    run(strategy)
    assert strategy.stopped is not None
    assert caplog.text.count("the recording stops here") == 1


@dataclass
class Packer:
    """Packs control variates behind the weights, as strategies of other packages do."""

    size: int

    def unpack(self, parameters: Parameters) -> tuple[list[np.ndarray], list[np.ndarray]]:
        arrays = parameters_to_ndarrays(parameters)
        return arrays[: self.size], arrays[self.size :]


@dataclass
class Scaffold(FedAvg):
    """SCAFFOLD in the style of a package upon Flower: variates travel in the same list."""

    packer: Packer = field(default_factory=lambda: Packer(2))
    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__init__(min_fit_clients=3, fraction_evaluate=0.0)

    def initialize_parameters(self, client_manager: object) -> Parameters:
        return ndarrays_to_parameters([*START, *(0 * one for one in START)])

    def configure_fit(self, server_round: int, parameters: Parameters, client_manager) -> list:
        sites = client_manager.sample(3)
        return [
            (one, FitIns(parameters, {"current_server_round": server_round})) for one in sites
        ]

    def aggregate_fit(self, server_round: int, results: list, failures: list) -> tuple:
        pairs = [self.packer.unpack(reply.parameters) for _, reply in results]
        mean = [sum(one) / len(pairs) for one in zip(*(w + c for w, c in pairs), strict=True)]
        return ndarrays_to_parameters(mean), {}


def test_a_strategy_of_another_package_is_recorded_and_looks_like_itself(tmp_path: Path):
    strategy = RecordingStrategy(Scaffold(), tmp_path)
    # What such a package's server asks and sets.
    assert isinstance(strategy, Scaffold)
    assert isinstance(strategy, RecordingStrategy)
    assert strategy.packer.size == 2
    strategy.rate = 0.5
    learned = run(strategy)
    assert vars(strategy)["_strategy"].rate == 0.5
    strategy.finish()
    assert strategy.stopped is None
    bodies = [one.body for one in read_messages(tmp_path)]
    updates = [one for one in bodies if isinstance(one, Update)]
    assert len(updates) == 6
    assert set(updates[0].delta) == {"0", "1", "2", "3"}
    assert len(learned) == 4


def send(kind: str, **metrics: object) -> Callable[[Site, FitIns], FitRes]:
    """Return a client that sends the change by half of its number, in one of several ways."""

    def answer(proxy: Site, asked: FitIns) -> FitRes:
        start = parameters_to_ndarrays(asked.parameters)
        change = [np.full_like(one, proxy.number / 2) for one in start]
        arrays = {
            "weights": [one + half for one, half in zip(start, change, strict=True)],
            "differences": change,
            "gradients": [-2 * one for one in change],
            "codes": [(2 * one).astype(np.int8) for one in change],
        }[kind]
        return FitRes(OK, ndarrays_to_parameters(arrays), 12, dict(metrics))

    return answer


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("weights", {}),
        ("differences", {"kind": "differences"}),
        ("gradients", {"kind": "gradients", "rate": 0.5}),
        ("codes", {"kind": "differences", "scales": 0.5}),
        ("codes", {"kind": "differences", "scales": "step"}),
        ("codes", {"kind": "differences", "scales": "steps"}),
    ],
)
def test_the_owner_of_a_run_says_what_replies_hold(
    tmp_path: Path, kind: str, options: dict[str, object]
):
    answer = send(kind, step=0.5, steps='{"0": 0.5, "1": 0.5}')
    replies = record(tmp_path, three(answer), **options)[1:4]
    changes = {one.sender: one.body.delta["0"].tolist() for one in replies}
    assert changes == {f"client/{number}": [number / 2] * 2 for number in (1, 2, 3)}


def test_codes_without_a_scale_are_told_and_not_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    bodies = [one.body for one in record(tmp_path, three(send("codes", loss=0.5)))]
    assert not any(isinstance(one, Update) for one in bodies)
    unstored = next(one for one in bodies if isinstance(one, UnstoredMessage))
    assert (unstored.kind, unstored.examples, unstored.metrics) == ("codes", 12, {"loss": 0.5})
    assert "'0' arrived as int8, which are codes of numbers: state their scale" in caplog.text


@pytest.mark.parametrize(
    ("unit", "recipe", "examples"),
    [
        ("examples", None, 12),
        ("steps", None, None),
        # 12 steps in 3 epochs are 4 batches of 8.
        ("steps", Recipe(rate=0.1, epochs=3, batch=8), 32),
        ("batches", Recipe(rate=0.1, epochs=3, batch=8), 96),
    ],
)
def test_steps_are_not_taken_for_examples(
    tmp_path: Path, unit: CountUnit, recipe: Recipe | None, examples: int | None
):
    sites = three(send("weights"))
    body = record(tmp_path, sites, count_unit=unit, recipe=recipe)[1].body
    assert isinstance(body, Update)
    assert body.examples == examples
    assert body.metrics == ({} if unit == "examples" else {"num_examples": 12.0})


def test_a_reply_begins_from_the_model_of_the_round_that_it_tells(tmp_path: Path):
    def late(proxy: Site, asked: FitIns) -> FitRes:
        # In round 2 the third client replies with what it began in round 1.
        now = int(asked.config["round"])
        told = 1 if proxy.number == 3 else now
        start = START if told == 1 else parameters_to_ndarrays(asked.parameters)
        arrays = [one + proxy.number for one in start]
        return FitRes(OK, ndarrays_to_parameters(arrays), 10, {"began": told})

    for one in record(tmp_path, three(late), 2, began_in="began"):
        if isinstance(one.body, Update):
            assert one.body.delta["0"].tolist() == pytest.approx([int(one.sender[-1])] * 2)


def test_a_reply_of_an_unknown_round_is_not_stored(tmp_path: Path):
    sites = three(send("weights", began=9))
    body = record(tmp_path, sites, began_in="began")[1].body
    assert isinstance(body, UnstoredMessage)
    assert body.reason.startswith("it began in round 9")


@pytest.mark.parametrize(
    ("names", "warning"),
    [
        (["fc.weight"], "`tensors` has 1 names, but the app sends 2 arrays, so none is named"),
        (["a", "b", "c"], "`tensors` has 3 names, but the app sends 2 arrays"),
        ({"a": np.zeros((2, 2)), "b": np.zeros(())}, "arrays of other shapes"),
    ],
)
def test_names_that_do_not_fit_are_told_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, names: Iterable[str], warning: str
):
    body = record(tmp_path, rounds=2, tensors=names)[0].body
    assert caplog.text.count(warning) == 1
    assert list(body.weights) == ["0", "1"]


def test_texts_are_named_with_their_readers(tmp_path: Path):
    record(tmp_path)
    told = {one.kind: one.text for one in show(tmp_path).metadata}
    assert told["texts"] == (
        "note: texts or bytes of 3 senders, whose content is not stored, read by server"
    )


def test_trees_are_replies_that_the_server_reads(tmp_path: Path):
    def trees(proxy: Site, asked: FitIns) -> FitRes:
        return FitRes(OK, Parameters([b'{"trees": [61.5]}'], ""), 100, {"auc": 0.75})

    class First(FedAvg):
        def aggregate_fit(self, server_round: int, results: list, failures: list) -> tuple:
            return results[0][1].parameters, {}

    start = Parameters([b"{}"], "")
    wrapped = First(min_fit_clients=3, fraction_evaluate=0.0, initial_parameters=start)
    strategy = RecordingStrategy(wrapped, tmp_path)
    serve(strategy, [Site(str(number), number, trees) for number in (1, 2, 3)], 1)
    strategy.finish()
    replies = [one.body for one in read_messages(tmp_path) if one.sender != SERVER]
    assert {(one.kind, one.examples, one.metrics["auc"]) for one in replies} == {
        ("text", 100, 0.75)
    }
    assert (
        "server reads individual replies of 3 other parties that are not stored (text): no "
        "attack on them was tried."
    ) in show(tmp_path).readers
