"""A client with a function for messages to train."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from clients.task import Net, load_data, train

app = ClientApp()


@app.train()
def fit(message: Message, context: Context) -> Message:
    config = context.run_config
    net = Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    loader, _ = load_data(
        context.node_config["partition-id"], context.node_config["num-partitions"]
    )
    clip, noise = config["max-grad-norm"], config["noise-multiplier"]
    loss = train(net, loader, clip, noise, config["learning-rate"])
    metrics = {"num-examples": 100.0}
    if config.get("sends-loss"):
        metrics["train_loss"] = loss
    arrays = ArrayRecord(net.state_dict())
    content = RecordDict({"arrays": arrays, "metrics": MetricRecord(metrics)})
    return Message(content, reply_to=message)
