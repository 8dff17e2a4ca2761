"""What a client does: train and evaluate on what it holds."""

import json
from pathlib import Path

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from digits_app.noise import noise_of
from digits_app.task import accuracy, build, partition, train

app = ClientApp()


def noised(message: Message, context: Context, answer: ClientAppCallable) -> Message:
    """Add the noise that the run is configured for, if any."""
    mod = noise_of(context.run_config)
    return answer(message, context) if mod is None else mod(message, context, answer)


@app.train(mods=[noised])
def fit(message: Message, context: Context) -> Message:
    """Train the model that came, and send it back."""
    config = context.run_config
    inputs, labels = held(context)
    model = build()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loss = train(model, inputs, labels, config["rate"], config["epochs"], config["batch"])
    if config["counts"]:
        leave_counts(Path(config["counts"]), context, labels)
    metrics = MetricRecord({"train-loss": loss, "num-examples": len(inputs)})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Say how well the model that came does here."""
    inputs, labels = held(context)
    model = build()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    metrics = MetricRecord(
        {"accuracy": accuracy(model, inputs, labels), "num-examples": len(inputs)}
    )
    return Message(content=RecordDict({"metrics": metrics}), reply_to=message)


def held(context: Context) -> tuple[torch.Tensor, torch.Tensor]:
    """What the node that this runs on holds, with its canaries where there are any."""
    torch.set_num_threads(1)
    number = int(context.node_config["partition-id"])
    inputs, labels = partition(number, int(context.node_config["num-partitions"]))
    canaries = context.run_config["canaries"]
    if canaries:
        with np.load(Path(canaries) / f"client-{number}.npz") as drawn:
            inputs = torch.cat([inputs, torch.from_numpy(drawn["x"])])
            labels = torch.cat([labels, torch.from_numpy(drawn["y"])])
    return inputs, labels


def leave_counts(folder: Path, context: Context, labels: torch.Tensor) -> None:
    """Write down the truth, which no message tells, beside all messages."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = torch.bincount(labels, minlength=10).tolist()
    told = {"partition": context.node_config["partition-id"], "labels": counts}
    (folder / f"{context.node_id}.json").write_text(json.dumps(told))
