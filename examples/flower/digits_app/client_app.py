"""The client app: train and evaluate on the client's data."""

import json
from pathlib import Path

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from digits_app.noise import make_noise_mod
from digits_app.task import accuracy, build, partition, train

app = ClientApp()


def noised(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Add the configured noise, if any."""
    mod = make_noise_mod(context.run_config)
    return call_next(message, context) if mod is None else mod(message, context, call_next)


@app.train(mods=[noised])
def fit(message: Message, context: Context) -> Message:
    """Train the received model, and send it back."""
    config = context.run_config
    inputs, labels = load_client_data(context)
    model = build()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loss = train(model, inputs, labels, config["rate"], config["epochs"], config["batch"])
    if config["counts"]:
        write_counts(Path(config["counts"]), context, labels)
    # The recording names the client by its partition, as `overheard canaries` does.
    partition_id = int(context.node_config["partition-id"])
    metrics = MetricRecord(
        {"train-loss": loss, "num-examples": len(inputs), "partition-id": partition_id}
    )
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Evaluate the received model on the client's data."""
    inputs, labels = load_client_data(context)
    model = build()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    metrics = MetricRecord(
        {"accuracy": accuracy(model, inputs, labels), "num-examples": len(inputs)}
    )
    return Message(content=RecordDict({"metrics": metrics}), reply_to=message)


def load_client_data(context: Context) -> tuple[torch.Tensor, torch.Tensor]:
    """Load the client's data, including its canaries if there are any."""
    torch.set_num_threads(1)
    number = int(context.node_config["partition-id"])
    inputs, labels = partition(number, int(context.node_config["num-partitions"]))
    canaries = context.run_config["canaries"]
    if canaries:
        with np.load(Path(canaries) / f"client-{number}.npz") as canary_file:
            inputs = torch.cat([inputs, torch.from_numpy(canary_file["x"])])
            labels = torch.cat([labels, torch.from_numpy(canary_file["y"])])
    return inputs, labels


def write_counts(folder: Path, context: Context, labels: torch.Tensor) -> None:
    """Write the client's label counts, which are part of the ground truth, to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = torch.bincount(labels, minlength=10).tolist()
    counts_of_client = {"partition": context.node_config["partition-id"], "labels": counts}
    (folder / f"{context.node_id}.json").write_text(json.dumps(counts_of_client))
