"""How a run becomes a recording: by an import, or by a recorder of Flower or NVFlare."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import numpy as np
import tomli_w
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity
from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.shareable import Shareable
from safetensors.torch import save_file

from overheard.core.parties import SERVER, Party
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower import RecordingGrid
from overheard.recorders.flower_strategy import RecordingStrategy
from overheard.recorders.folder_import import import_recording
from overheard.recorders.nvflare_rounds import NvflareRoundRecorder
from overheard.recorders.replies.reply_reading import ReplyReading
from overheard.recorders.run_info import RunInfo
from tests.readings.federations import Reply, Round, SavedRun, Tensors

Options = Mapping[str, object]
"""Given to the import or to the recorder."""


def record(run: SavedRun, folder: Path, options: Options | None = None) -> Path:
    """Record a run, with its truth, and return the folder of the recording."""
    recorders = {
        "import": _import,
        "flower_old": _flower_old,
        "flower_new": _flower_new,
        "nvflare": _nvflare,
    }
    recording = folder / "recording"
    recorders[run.channel](run, recording, options or {})
    write_truth(run, recording)
    return recording


def write_truth(run: SavedRun, recording: Path) -> None:
    """Write what each client held in each round for which it replied."""
    counts = [
        {"round": number, "party": f"client/{name}", "labels": list(run.labels[name])}
        for number, one in enumerate(run.rounds)
        for name, reply in one.replies.items()
        if reply is not None and name in run.labels
    ]
    truth = json.dumps({"counts": counts, "accuracy": []})
    (recording / "truth.json").write_text(truth, encoding="utf-8")


def save(run: SavedRun, folder: Path) -> None:
    """Save a run as `overheard import` reads it."""
    everyone = sorted({name for one in run.rounds for name in one.replies})
    about = {"clients": everyone, **run.about, "asked": [], "answers": []}
    for number, one in enumerate((*run.rounds, Round(run.final, {}))):
        place = folder / f"round-{number:04d}"
        place.mkdir(parents=True)
        save_file(_contiguous(one.start), place / "global.safetensors")
        if number < len(run.rounds):
            about["asked"].append({"round": number, "clients": list(one.replies)})
        for name, reply in one.replies.items():
            if reply is None:
                continue
            save_file(_contiguous(reply.weights), place / f"client-{name}.safetensors")
            answer: dict[str, object] = {"round": number, "client": name}
            if reply.examples is not None:
                answer["examples"] = reply.examples
            about["answers"].append(answer)
    (folder / "about.toml").write_text(tomli_w.dumps(about), encoding="utf-8")


def _contiguous(weights: Tensors) -> dict[str, object]:
    return {name: tensor.contiguous().clone() for name, tensor in weights.items()}


def _import(run: SavedRun, recording: Path, options: Options) -> None:
    exported = recording.with_name("exported")
    save(run, exported)
    import_recording(exported, recording, **options)  # type: ignore[arg-type]


class _Client(ClientProxy):
    """A client of whom only the name is used."""

    def _unused(self, *arguments: object) -> object:
        raise NotImplementedError

    fit = evaluate = get_properties = get_parameters = reconnect = _unused


class _Script(FedAvg):
    """A strategy that sends the models of a run, whatever comes back."""

    def __init__(self, run: SavedRun) -> None:
        super().__init__()
        self.run = run

    def configure_fit(self, server_round: int, parameters: object, client_manager: object):
        """Ask the clients of the round."""
        one = self.run.rounds[server_round - 1]
        model = ndarrays_to_parameters(_arrays(one.start))
        return [(_Client(name), FitIns(model, {})) for name in one.replies]

    def aggregate_fit(self, server_round: int, results: object, failures: object):
        """Return the model that the run has next."""
        return ndarrays_to_parameters(_arrays(next_model(self.run, server_round - 1))), {}


def next_model(run: SavedRun, number: int) -> Tensors:
    """Return the model after a round."""
    return run.rounds[number + 1].start if number + 1 < len(run.rounds) else run.final


def _arrays(weights: Tensors) -> list[np.ndarray]:
    return [tensor.numpy() for tensor in weights.values()]


def _flower_old(run: SavedRun, recording: Path, options: Options) -> None:
    names = {"tensors": tuple(run.final), **options}
    strategy = RecordingStrategy(_Script(run), recording, **names)
    for number, one in enumerate(run.rounds, start=1):
        asked = strategy.configure_fit(number, ndarrays_to_parameters([]), None)
        results = [
            (client, _fit_result(reply))
            for client, _ in asked
            if (reply := one.replies[client.cid]) is not None
        ]
        strategy.aggregate_fit(number, results, [])
    strategy.finish()


def _fit_result(reply: Reply) -> FitRes:
    parameters = ndarrays_to_parameters(_arrays(reply.weights))
    return FitRes(Status(Code.OK, ""), parameters, reply.examples or 0, {})


class _Nodes(Grid):
    """A grid whose nodes answer at once with the replies of a run."""

    def __init__(self, run: SavedRun) -> None:
        # Nobody answers in the last round, which shows the final model.
        last = Round(run.final, dict.fromkeys(run.rounds[-1].replies))
        self.script = replace(run, rounds=(*run.rounds, last))
        self.number, self.numbers = 0, count(1)

    def set_run(self, run: object) -> None:
        """Not asked for."""

    @property
    def run(self) -> object:
        """Not asked for."""
        raise NotImplementedError

    def create_message(self, *arguments: object, **named: object) -> FlowerMessage:
        """Not asked for."""
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        """Not asked for."""
        raise NotImplementedError

    def push_messages(self, messages: Iterable[FlowerMessage]) -> Iterable[str]:
        """Not asked for."""
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[FlowerMessage]:
        """Not asked for."""
        raise NotImplementedError

    def send_and_receive(
        self, messages: Iterable[FlowerMessage], *, timeout: float | None = None
    ) -> Iterator[FlowerMessage]:
        """Yield the reply of each node that has one."""
        for message in list(messages):
            message.metadata.__dict__["_message_id"] = str(next(self.numbers))
            name = str(message.metadata.dst_node_id)
            reply = self.script.rounds[self.number].replies[name]
            if reply is None:
                continue
            metrics = {} if reply.examples is None else {"num-examples": reply.examples}
            content = RecordDict(
                {"arrays": _array_record(reply.weights), "metrics": MetricRecord(metrics)}
            )
            yield FlowerMessage(content, reply_to=message)


def _array_record(weights: Tensors) -> ArrayRecord:
    return ArrayRecord({name: Array(tensor.numpy()) for name, tensor in weights.items()})


def _flower_new(run: SavedRun, recording: Path, options: Options) -> None:
    names = {f"_{name}_id": 1 for name in ("run", "node", "task")}
    nodes = _Nodes(run)
    with patch.multiple(TaskIdentity, **names):
        grid = RecordingGrid(nodes, recording, node_names=str, **options)
        for number, one in enumerate(nodes.script.rounds):
            nodes.number = number
            kind = "train" if number < len(run.rounds) else "evaluate"
            list(grid.send_and_receive(_requests(one.start, kind, one.replies)))
        grid.finish()


def _requests(weights: Tensors, kind: str, names: Iterable[str]) -> list[FlowerMessage]:
    content = RecordDict({"config": ConfigRecord({}), "arrays": _array_record(weights)})
    return [FlowerMessage(content, int(name), kind) for name in names]


def _nvflare(run: SavedRun, recording: Path, options: Options) -> None:
    recorder = NvflareRoundRecorder(
        AsyncWriter(recording, RunInfo("nvflare")),
        SERVER,
        sizes=str(MetaKey.NUM_STEPS_CURRENT_ROUND),
        keep_error_texts=False,
        reading=ReplyReading(**options),  # type: ignore[arg-type]
    )
    everyone = tuple(sorted({_site(name) for one in run.rounds for name in one.replies}))
    for number, one in enumerate((*run.rounds, Round(run.final, {}))):
        task = DXO(DataKind.WEIGHTS, _named_arrays(one.start)).to_shareable()
        task.set_header("current_round", number)
        for name in one.replies or everyone:
            recorder.record_task(f"{name} {number}", _site(name), task, everyone)
        for name, reply in one.replies.items():
            if reply is not None:
                recorder.record_result(f"{name} {number}", _result(reply))
    recorder.close()


def _site(name: str) -> Party:
    return Party(f"client/{name.removeprefix('client/')}")


def _named_arrays(weights: Tensors) -> Mapping[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in weights.items()}


def _result(reply: Reply) -> Shareable:
    meta = {} if reply.examples is None else {MetaKey.NUM_STEPS_CURRENT_ROUND: reply.examples}
    return DXO(DataKind.WEIGHTS, _named_arrays(reply.weights), meta).to_shareable()
