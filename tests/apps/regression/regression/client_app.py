"""An agency."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from regression.task import load_data, make_net, mean_error, train

app = ClientApp()


@app.train()
def train_agency(msg: Message, context: Context) -> Message:
    net = make_net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    partition_id = context.node_config["partition-id"]
    loader = load_data(partition_id)
    mse = train(net, loader, context.run_config["local-epochs"], context.run_config["lr"])
    metrics = {"mse": mse, "num-examples": len(loader.dataset), "partition-id": partition_id}
    content = RecordDict(
        {"arrays": ArrayRecord(net.state_dict()), "metrics": MetricRecord(metrics)}
    )
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate_agency(msg: Message, context: Context) -> Message:
    net = make_net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    loader = load_data(context.node_config["partition-id"])
    metrics = {"mae": mean_error(net, loader), "num-examples": len(loader.dataset)}
    return Message(content=RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
