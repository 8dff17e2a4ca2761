"""vit_lora: clients train adapters and the classifier."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from peft import get_peft_model_state_dict, set_peft_model_state_dict

from vit_lora.task import get_model, load_data
from vit_lora.task import test as test_fn
from vit_lora.task import train as train_fn

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Train the model on local data."""
    model = get_model(context.run_config)
    set_peft_model_state_dict(model, msg.content["arrays"].to_torch_state_dict())
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    partition_id = context.node_config["partition-id"]
    trainloader = load_data(partition_id, context.run_config["batch-size"])
    train_loss = train_fn(
        model,
        trainloader,
        context.run_config["local-epochs"],
        context.run_config["learning-rate"],
        device,
    )
    model_record = ArrayRecord(get_peft_model_state_dict(model))
    metric_record = MetricRecord(
        {
            "train_loss": train_loss,
            "num-examples": len(trainloader.dataset),
            "partition-id": partition_id,
        }
    )
    content = RecordDict({"arrays": model_record, "metrics": metric_record})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on local data."""
    model = get_model(context.run_config)
    set_peft_model_state_dict(model, msg.content["arrays"].to_torch_state_dict())
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    loader = load_data(context.node_config["partition-id"], context.run_config["batch-size"])
    loss, accuracy = test_fn(model, loader, device)
    metrics = {"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(loader.dataset)}
    return Message(content=RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
