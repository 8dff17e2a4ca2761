"""bert_full: A Flower / Hugging Face app."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from transformers import logging

from bert_full.task import get_model, load_data
from bert_full.task import test as test_fn
from bert_full.task import train as train_fn

logging.set_verbosity_error()

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    partition_id = context.node_config["partition-id"]
    trainloader, _ = load_data(partition_id)

    model = get_model()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict(), strict=True)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model.to(device)

    train_loss = train_fn(
        model,
        trainloader,
        epochs=context.run_config["local-epochs"],
        lr=context.run_config["lr"],
        device=device,
    )
    metrics = {
        "train_loss": train_loss,
        "num-examples": len(trainloader.dataset),
        "partition-id": partition_id,
    }
    content = RecordDict(
        {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord(metrics)}
    )
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    _, testloader = load_data(context.node_config["partition-id"])
    model = get_model()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict(), strict=True)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    val_loss, val_accuracy = test_fn(model.to(device), testloader, device)
    metrics = {
        "val_loss": val_loss,
        "val_accuracy": val_accuracy,
        "num-examples": len(testloader.dataset),
    }
    return Message(content=RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
