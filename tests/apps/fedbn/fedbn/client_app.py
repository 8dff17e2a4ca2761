"""Scanners: batch norm layers stay in the state of the client."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedbn.task import CNN, evaluate, load_data, shared_state, train

app = ClientApp()
KEY = "batch_norm"


def load(msg: Message, context: Context) -> CNN:
    net = CNN()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict(), strict=False)
    if KEY in context.state:
        net.load_state_dict(context.state[KEY].to_torch_state_dict(), strict=False)
    return net


@app.train()
def fit(msg: Message, context: Context) -> Message:
    config = context.run_config
    net = load(msg, context)
    loader = load_data(context.node_config["partition-id"], config["batch-size"])
    loss = train(net, loader, config["local-epochs"], config["lr"])
    bn = {k: v for k, v in net.state_dict().items() if "bn" in k}
    context.state[KEY] = ArrayRecord(bn)
    metrics = MetricRecord(
        {
            "loss": loss,
            "num-examples": len(loader.dataset),
            "partition-id": context.node_config["partition-id"],
        }
    )
    content = RecordDict({"arrays": ArrayRecord(shared_state(net)), "metrics": metrics})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def test(msg: Message, context: Context) -> Message:
    net = load(msg, context)
    loader = load_data(context.node_config["partition-id"], 64)
    metrics = MetricRecord(
        {"accuracy": evaluate(net, loader), "num-examples": len(loader.dataset)}
    )
    return Message(content=RecordDict({"metrics": metrics}), reply_to=msg)
