"""What a client does: train and evaluate on what it holds."""

import json
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits_app.task import accuracy, build, partition, train

app = ClientApp()


@app.train()
def fit(message: Message, context: Context) -> Message:
    """Train the model that came, and send it back."""
    config = context.run_config
    inputs, labels = held(context)
    model = build()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loss = train(model, inputs, labels, config["rate"], config["epochs"], config["batch"])
    if config["counts"]:
        leave_counts(Path(config["counts"]), message.metadata.dst_node_id, labels)
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
    """What the node that this runs on holds."""
    torch.set_num_threads(1)
    node = context.node_config
    return partition(int(node["partition-id"]), int(node["num-partitions"]))


def leave_counts(folder: Path, node: int, labels: torch.Tensor) -> None:
    """Write down the truth, which no message tells, beside all messages."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = torch.bincount(labels, minlength=10).tolist()
    (folder / f"{node}.json").write_text(json.dumps(counts))
