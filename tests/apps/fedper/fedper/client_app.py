"""Gardens: the head stays in the state of the client."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch.utils.data import DataLoader

from fedper.models import create_model
from fedper.task import garden, train

app = ClientApp()


def personal_model(msg: Message, context: Context):
    model = create_model(context.run_config["num-classes"])
    model.body.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    if "head" in context.state.array_records:
        model.head.load_state_dict(context.state.array_records["head"].to_torch_state_dict())
    return model


@app.train()
def fit(msg: Message, context: Context) -> Message:
    config = context.run_config
    partition_id = context.node_config["partition-id"]
    model = personal_model(msg, context)
    loader = DataLoader(garden(partition_id), config["batch-size"], shuffle=True)
    loss = train(model, loader, config["local-epochs"], config["learning-rate"])
    context.state["head"] = ArrayRecord(model.head.state_dict())
    metrics = MetricRecord(
        {"loss": loss, "num-examples": len(loader.dataset), "partition-id": partition_id}
    )
    body = ArrayRecord(model.body.state_dict())
    return Message(RecordDict({"arrays": body, "metrics": metrics}), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    model = personal_model(msg, context).eval()
    images, labels = garden(context.node_config["partition-id"]).tensors
    with torch.inference_mode():
        accuracy = (model(images).argmax(1) == labels).float().mean().item()
    metrics = MetricRecord({"accuracy": accuracy, "num-examples": len(labels)})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)
