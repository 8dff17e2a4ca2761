import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from math import inf
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.serverapp.strategy import DifferentialPrivacyServerSideAdaptiveClipping, FedAvg
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.archive.run_config import read_run_config
from overheard.archive.truth import read_truth
from overheard.core.accounting.client_accounts import account_clients, stated_clients
from overheard.core.accounting.composed_steps import NoisySteps
from overheard.core.accounting.stated_steps import write_steps
from overheard.core.algorithm.canary_direction import draw_canary_direction
from overheard.core.messages import Evaluation, MissingReply, UnstoredMessage, Update
from overheard.core.messages import Message as TranscriptMessage
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.recorders.flower import CanaryNodes, RecordingGrid
from overheard.report.show import show

NODES = (11, 2**63 + 5, 15)
START = {"w": np.array([1.0, 2.0], np.float32), "b": np.array([0.5], np.float32)}

Answer = Callable[[Message], Message | None]


class Nodes(Grid):
    """A grid whose nodes answer at once, the last asked first; all it gives is one-shot."""

    def __init__(self, answer: Answer, nodes: Sequence[int] = NODES) -> None:
        self.answer = answer
        self.nodes = nodes
        self.sent: list[Message] = []
        self.numbers = count(1)
        self.color = "green"

    def set_run(self, run: Run) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Run:
        raise NotImplementedError

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return iter(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(next(self.numbers))
            self.sent.append(message)
            yield message.metadata.message_id

    def pull_messages(self, message_ids: Iterable[str]) -> Iterator[Message]:
        wanted = set(message_ids)
        asked = [one for one in self.sent if one.metadata.message_id in wanted]
        for message in reversed(asked):
            reply = self.answer(message)
            if reply is not None:
                yield reply

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        return self.pull_messages(list(self.push_messages(messages)))


@pytest.fixture(autouse=True)
def a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def record_of(arrays: dict[str, np.ndarray]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(one)) for name, one in arrays.items()})


def answer(message: Message, **numbers: float) -> Message:
    """Adds its number of examples to the weights; says how it does where it is to evaluate."""
    node = message.metadata.dst_node_id % 10
    metrics = MetricRecord({"num-examples": node, "loss": 0.5, **numbers})
    content = RecordDict({"metrics": metrics})
    if message.metadata.message_type == "train":
        arrays = message.content["arrays"]
        content["arrays"] = record_of({k: v.numpy() + node for k, v in arrays.items()})
    return Message(content, reply_to=message)


def ask(
    kind: str, arrays: ArrayRecord | None = None, nodes: Sequence[int] = NODES
) -> list[Message]:
    content = RecordDict({"config": ConfigRecord({"lr": 0.1})})
    if arrays is not None:
        content["arrays"] = arrays
    return [Message(content, node, kind) for node in nodes]


def read_messages(folder: Path) -> Sequence[TranscriptMessage]:
    verify_transcript(folder)
    return open_transcript(folder).messages


def outline(folder: Path) -> list[str]:
    return [f"{one.round} {type(one.body).__name__}" for one in read_messages(folder)]


def test_records_all_messages_of_a_fedavg_run(
    tmp_path: Path,
) -> None:
    grid = RecordingGrid(Nodes(answer), tmp_path, model="two tensors", sampling="fixed")
    learned = FedAvg().start(grid, record_of(START), num_rounds=2)
    grid.finish()
    assert outline(tmp_path) == [
        "0 Broadcast", *["0 Update"] * 3,
        "1 Broadcast", *["1 Evaluation"] * 3, "1 Broadcast", *["1 Update"] * 3,
        "2 Broadcast", *["2 Evaluation"] * 3,
    ]  # fmt: skip
    messages = read_messages(tmp_path)
    everyone = frozenset(f"client/{node}" for node in NODES)
    first, update = messages[0], messages[1]
    assert first.readers == everyone
    assert first.body.config == {"server-round": "1"}
    assert first.body.weights["w"].tolist() == [1.0, 2.0]
    assert update.readers == {SERVER}
    assert update.body.examples == int(update.sender[-1])
    assert update.body.delta["w"].tolist() == [update.body.examples] * 2
    assert update.body.metrics == {"loss": 0.5}
    assert first.times.sent <= update.times.sent <= update.times.received
    assert isinstance(messages[5].body, Evaluation)
    last = messages[-4].body
    assert torch.equal(last.weights["w"], torch.tensor(learned.arrays["w"].numpy()))
    manifest = read_manifest(tmp_path)
    assert (manifest.model, manifest.sampling) == ("two tensors", "fixed")
    assert set(manifest.parties) == everyone | {SERVER}


def test_the_steps_that_clients_state_are_recorded_and_accounted_for(tmp_path: Path) -> None:
    day = NoisySteps(4.0, "none", 1.0, 1)

    def state(message: Message) -> Message:
        reply = answer(message)
        # One node has no DP-SGD in its app.
        if message.metadata.dst_node_id != NODES[0]:
            reply.content["dp"] = ConfigRecord(write_steps([day], 0, 1.0, "prv"))
        return reply

    grid = RecordingGrid(Nodes(state), tmp_path)
    FedAvg().start(grid, record_of(START), num_rounds=2)
    grid.finish()
    parties = [Party(f"client/{node}") for node in NODES]
    found = account_clients(stated_clients(read_messages(tmp_path), parties), 1e-5)
    assert found is not None
    bare, *others = found.accounts
    assert (bare.client, bare.epsilon) == (parties[0], inf)
    assert [(one.messages, one.steps) for one in others] == [(2, 2), (2, 2)]


class ConfiguredNodes(Nodes):
    """A grid of a run that was started with a configuration."""

    @property
    def run(self) -> Run:
        started = Run.create_empty(1)
        started.override_config = {"learning-rate": 0.5, "optimizer": "adam", "token": "secret"}
        return started


def test_settings_of_the_training_with_which_the_run_was_started_are_recorded(tmp_path: Path):
    grid = RecordingGrid(ConfiguredNodes(answer), tmp_path)
    FedAvg().start(grid, record_of(START), num_rounds=1)
    grid.finish()
    assert read_run_config(tmp_path) == {"learning-rate": 0.5, "optimizer": "adam"}
    assert "secret" not in (tmp_path / "run_config.json").read_text()


def test_passes_messages_and_replies_unchanged_and_in_order(
    tmp_path: Path,
) -> None:
    wrapped, received = Nodes(answer), list[Message]()

    def keep(message: Message) -> Message:
        received.append(answer(message))
        return received[-1]

    wrapped.answer = keep
    grid = RecordingGrid(wrapped, tmp_path)
    messages = ask("train", record_of(START))
    replies = grid.send_and_receive(iter(messages), timeout=3.0)
    assert [id(one) for one in wrapped.sent] == [id(one) for one in messages]
    assert [id(one) for one in replies] == [id(one) for one in received]
    assert [one.metadata.src_node_id for one in replies] == [*reversed(NODES)]
    assert list(grid.get_node_ids()) == list(NODES)
    assert grid.color == "green"
    grid.finish()
    senders = [one.sender for one in read_messages(tmp_path)[1:]]
    assert senders == [f"client/{node}" for node in reversed(NODES)]


def test_records_replies_before_the_strategy_changes_them(tmp_path: Path) -> None:
    grid = RecordingGrid(Nodes(answer), tmp_path)
    # Replaces the weights in the replies by clipped ones.
    strategy = DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(fraction_evaluate=0.0), 0.0, 3, initial_clipping_norm=1e-3
    )
    strategy.start(grid, record_of(START), num_rounds=1)
    grid.finish()
    bodies = [one.body for one in read_messages(tmp_path)]
    changes = {one.delta["b"].item() for one in bodies if isinstance(one, Update)}
    assert changes == {1, 3, 5}


def test_errors_and_timeouts_are_missing_replies_without_error_texts(tmp_path: Path) -> None:
    def fail(message: Message) -> Message | None:
        number = NODES.index(message.metadata.dst_node_id)
        error = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "patient 7\x1b[2J")
        return [answer(message), Message(error, reply_to=message), None][number]

    for keeps in (False, True):
        folder = tmp_path / str(keeps)
        grid = RecordingGrid(Nodes(fail), folder, keep_error_texts=keeps)
        FedAvg().start(grid, record_of(START), num_rounds=1)
        grid.finish()
        name = f"CLIENT_APP_RAISED_EXCEPTION{': patient 7?[2J' if keeps else ''}"
        missing = [one for one in read_messages(folder) if isinstance(one.body, MissingReply)]
        assert [(one.round, one.sender[-1], one.body.reason) for one in missing] == [
            (0, "3", name),
            (0, "5", "no answer to train"),
            (1, "3", f"evaluate: {name}"),
            (1, "5", "no answer to evaluate"),
        ]


def test_evaluating_a_model_opens_the_round_that_trains_it(
    tmp_path: Path,
) -> None:
    grid, arrays = RecordingGrid(Nodes(answer), tmp_path), record_of(START)
    grid.send_and_receive(ask("evaluate", arrays, NODES[:1]))
    grid.send_and_receive(ask("train", arrays, NODES[1:2]))
    grid.send_and_receive(ask("train", arrays, NODES[1:2]))
    grid.finish(record_of(START))
    assert outline(tmp_path) == [
        "0 Broadcast", "0 Evaluation", "0 Broadcast", "0 Update",
        "1 Broadcast", "1 Update",
        "2 Broadcast",
    ]  # fmt: skip
    assert [len(one.readers) for one in read_messages(tmp_path)[::2]] == [1, 1, 1, 0]


def test_lists_replies_of_federated_analytics_without_a_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid = RecordingGrid(Nodes(answer), tmp_path)
    assert len(list(grid.send_and_receive(ask("query")))) == 3
    assert len(list(grid.send_and_receive(ask("query.count")))) == 3
    assert caplog.text.count("'query' are not stored") == 1
    assert len(list(grid.send_and_receive(ask("evaluate")))) == 3
    grid.finish()
    assert outline(tmp_path) == [
        *["0 UnstoredMessage"] * 6, "0 Broadcast", *["0 Evaluation"] * 3
    ]  # fmt: skip
    reply = read_messages(tmp_path)[0]
    assert reply.readers == {SERVER}
    assert isinstance(reply.body, UnstoredMessage)
    assert reply.body.reason == "it is a reply to a message of the kind 'query'"
    assert reply.body.metrics == {"loss": 0.5}


def test_a_histogram_of_labels_that_is_asked_for_is_told_first(tmp_path: Path) -> None:
    def count(message: Message) -> Message:
        counts = MetricRecord({"num-examples": 9, "label-counts": [4, 5]})
        return Message(RecordDict({"metrics": counts}), reply_to=message)

    grid = RecordingGrid(Nodes(count), tmp_path)
    list(grid.send_and_receive(ask("query")))
    grid.finish()
    name, text = show(tmp_path).facts[0]
    assert (name, text.split(" is ")[0]) == ("told", "label-counts")


def test_updates_are_relative_to_the_nodes_own_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = record_of({name: one + 10 for name, one in START.items()})
    grid = RecordingGrid(Nodes(answer), tmp_path)
    grid.send_and_receive(
        [*ask("train", other, NODES[:1]), *ask("train", record_of(START), NODES[1:])]
    )
    grid.finish()
    messages = read_messages(tmp_path)
    updates = [one.body for one in messages]
    sent = {tuple(one.body.weights["w"].tolist()): len(one.readers) for one in messages[:2]}
    assert sent == {(11.0, 12.0): 1, (1.0, 2.0): 2}
    assert [one.delta["b"].item() for one in updates if isinstance(one, Update)] == [5, 3, 1]
    assert "different models" in caplog.text


def test_records_push_and_pull_and_warns_of_late_replies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid, arrays = RecordingGrid(Nodes(answer), tmp_path), record_of(START)
    numbers = [
        *grid.push_messages(ask("train", arrays, NODES[:1])),
        *grid.push_messages(ask("train", arrays, NODES[1:])),
    ]
    assert len(list(grid.pull_messages(numbers[:1]))) == 1
    assert len(list(grid.pull_messages(numbers[1:2]))) == 1
    moved = record_of({name: one + 1 for name, one in START.items()})
    later = list(grid.push_messages(ask("train", moved, NODES[:1])))
    assert len(list(grid.pull_messages([numbers[2], *later]))) == 2
    grid.finish()
    assert outline(tmp_path) == [
        "0 Broadcast", "0 Update", "0 Update", "0 MissingReply",
        "1 Broadcast", "1 Update", "1 UnstoredMessage",
    ]  # fmt: skip
    late = read_messages(tmp_path)[-1].body
    reason = "it answers no open request to its sender: it came late, or twice"
    assert (late.kind, late.reason) == ("weights", reason)
    assert len(read_messages(tmp_path)[0].readers) == 3
    assert caplog.text.count("after the end of their round") == 1


class Unreadable:
    """Raises an error on every attribute access."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


def test_malformed_replies_are_not_stored_but_reach_the_run(tmp_path: Path) -> None:
    nan = {name: one * float("nan") for name, one in START.items()}
    contents = [
        RecordDict(),
        RecordDict({"arrays": record_of(nan)}),
        RecordDict({"arrays": record_of({"v": START["w"]})}),
        RecordDict({"arrays": record_of({name: one[None] for name, one in START.items()})}),
        RecordDict({"arrays": ArrayRecord({n: Array("f", (), "pickle", b"") for n in START})}),
        RecordDict({"a": record_of(START), "b": record_of(START)}),
        Unreadable(),
    ]
    nodes = range(20, 20 + len(contents) + 1)

    def reply(message: Message) -> Message:
        number = message.metadata.dst_node_id - 20
        made = answer(message, nothing=float("inf"))
        if number < len(contents):
            made.__dict__["_content"] = contents[number]
        return made

    grid = RecordingGrid(Nodes(reply, nodes), tmp_path)
    replies = list(grid.send_and_receive(ask("train", record_of(START), nodes)))
    assert len(replies) == len(contents) + 1
    grid.finish()
    assert grid.stopped is None
    bodies = {one.sender: one.body for one in read_messages(tmp_path)[1:]}
    assert [type(bodies[f"client/{node}"]) for node in nodes] == [
        *[UnstoredMessage] * len(contents),
        Update,
    ]


def test_a_client_with_an_impossible_size_is_not_stored_and_the_others_are_recorded(
    tmp_path: Path,
) -> None:
    def reply(message: Message) -> Message:
        is_hostile = message.metadata.dst_node_id == NODES[1]
        return answer(message, **({"num-examples": 2**62} if is_hostile else {}))

    grid = RecordingGrid(Nodes(reply), tmp_path)
    for _ in range(3):
        list(grid.send_and_receive(ask("train", record_of(START))))
    grid.finish()
    assert grid.stopped is None
    bodies = [one.body for one in read_messages(tmp_path)]
    assert sum(isinstance(one, Update) for one in bodies) == 6
    unstored = [one.reason for one in bodies if isinstance(one, UnstoredMessage)]
    assert len(unstored) == 3
    assert "reports 4611686018427387904 examples" in unstored[0]


def test_errors_of_the_recorder_do_not_reach_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid = RecordingGrid(Nodes(answer), tmp_path)
    messages = ask("train", record_of(START))
    for one in messages:
        one.__dict__["_content"] = Unreadable()

    def reply(message: Message) -> Message:
        return Message(RecordDict(), reply_to=message)

    grid._grid.answer = reply
    assert len(list(grid.send_and_receive(messages))) == 3
    assert grid.stopped is not None
    assert caplog.text.count("the recording stops here") == 1
    # From then on messages pass unrecorded.
    grid._grid.answer = answer
    assert len(list(grid.send_and_receive(ask("train", record_of(START))))) == 3


def test_an_error_of_the_wrapped_grid_reaches_the_run_and_ends_the_round(
    tmp_path: Path,
) -> None:
    def lost(message: Message) -> Message:
        raise ConnectionError("the SuperLink is gone")

    grid = RecordingGrid(Nodes(lost), tmp_path)
    with pytest.raises(ConnectionError, match="SuperLink"):
        grid.send_and_receive(ask("train", record_of(START)))
    grid.finish()
    assert outline(tmp_path) == ["0 Broadcast", *["0 MissingReply"] * 3]


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
# Bytecode of later imports would be truncated.
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import numpy as np
import test_flower as here
from flwr.serverapp.strategy import FedAvg
for name in ("_run_id", "_node_id", "_task_id"):
    setattr(here.TaskIdentity, name, 1)
start = here.record_of({"w": np.ones(10_000, np.float32)})
grid = here.RecordingGrid(here.Nodes(here.answer), Path(sys.argv[1]))
learned = FedAvg().start(grid, start, num_rounds=2)
grid.finish()
print(learned.arrays["w"].numpy()[0] > 1, grid.stopped)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_the_run_continues_if_the_disk_is_full(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("True cannot write")
    assert "the recording stops here" in done.stderr


def test_a_dropped_grid_has_written_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "overheard"):
        FedAvg().start(RecordingGrid(Nodes(answer), tmp_path), record_of(START), num_rounds=1)
    assert not caplog.records
    assert outline(tmp_path)[-1] == "1 Evaluation"


def test_the_strategy_that_is_named_tells_the_algorithm(tmp_path: Path) -> None:
    strategy = FedAvg()
    named = RecordingGrid(Nodes(answer), tmp_path / "named", strategy=strategy)
    strategy.start(named, record_of(START), num_rounds=1)
    named.finish()
    assert read_manifest(named.folder).algorithm == "FedAvg(rate=1.0, mean='examples')"
    silent = RecordingGrid(Nodes(answer), tmp_path / "silent")
    FedAvg().start(silent, record_of(START), num_rounds=1)
    silent.finish()
    assert read_manifest(silent.folder).algorithm == ""


def test_canary_nodes_send_directions_that_the_ground_truth_names(tmp_path: Path) -> None:
    canaries = CanaryNodes(share=0.3, clip=2.0, seed=5)
    nodes = tuple(range(100, 140))
    start = {"w": np.ones((20, 30), np.float32), "steps": np.array([4])}

    def answer_as_node(message: Message) -> Message:
        context = Context(1, message.metadata.dst_node_id, {}, RecordDict(), {})
        return canaries(message, context, lambda asked, _: answer(asked))

    grid = Nodes(answer_as_node, nodes)
    with RecordingGrid(grid, tmp_path / "run", canaries=canaries) as recording:
        for change in (0, 1):
            now = {**start, "w": start["w"] + change}
            replies = list(recording.send_and_receive(ask("train", record_of(now), nodes)))
    truth = read_truth(tmp_path / "run", (CanaryDirections,))
    fact = truth.facts.get(CanaryDirections)
    assert fact is not None
    assert fact.seeds == canaries.seeds(nodes)
    assert 5 <= len(fact.seeds) <= 20  # 12 on average
    sent = [one for one in read_messages(tmp_path / "run") if isinstance(one.body, Update)]
    for message in sent:
        change = message.body.delta["w"]
        if message.sender in fact.seeds:
            assert float(change.norm()) == pytest.approx(2.0, rel=1e-3)
            direction = draw_canary_direction(
                message.body.delta, Seed(fact.seeds[message.sender])
            )
            assert torch.allclose(2 * direction["w"], change, atol=1e-5)
        else:
            assert float(change.std()) == pytest.approx(0.0, abs=1e-6)
    # Metrics and whole numbers are those of a client, and evaluation is left alone.
    canary = next(one for one in replies if f"client/{one.metadata.src_node_id}" in fact.seeds)
    assert canary.content["arrays"]["steps"].numpy() == 4
    assert canary.content["metrics"]["num-examples"] == canary.metadata.src_node_id % 10
    assert "arrays" not in answer_as_node(ask("evaluate", record_of(start), nodes)[0]).content


def test_a_grid_is_told_what_replies_hold(tmp_path: Path) -> None:
    def codes(message: Message) -> Message:
        node = message.metadata.dst_node_id % 10
        arrays = {name: np.full(one.shape, node, np.int8) for name, one in START.items()}
        content = RecordDict(
            {
                "arrays": record_of(arrays),
                "metrics": MetricRecord({"num-examples": 4, "label-counts": [1, 3]}),
                "scales": ConfigRecord(dict.fromkeys(START, 0.5)),
            }
        )
        return Message(content, reply_to=message)

    grid = RecordingGrid(
        Nodes(codes), tmp_path, kind="differences", scales="scales", count_unit="steps"
    )
    list(grid.send_and_receive(ask("train", record_of(START))))
    grid.finish()
    updates = {one.sender[-1]: one.body for one in read_messages(tmp_path)[1:]}
    for number, update in updates.items():
        assert bool((update.delta["w"] == int(number) / 2).all())
        assert update.examples is None
        assert update.metrics["num-examples"] == 4
