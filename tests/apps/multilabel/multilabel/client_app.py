"""One hospital."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from multilabel.task import FindingsNet, label_accuracy, load_data, train

app = ClientApp()


@app.train()
def fit(msg: Message, context: Context) -> Message:
    cfg = context.run_config
    hospital = int(context.node_config["partition-id"])
    model = FindingsNet()
    model.load_state_dict(msg.content.array_records["arrays"].to_torch_state_dict())
    loader = load_data(hospital, cfg["batch-size"])
    loss = train(model, loader, cfg["local-epochs"], cfg["learning-rate"], cfg["momentum"])
    return Message(
        RecordDict(
            {
                "arrays": ArrayRecord(model.state_dict()),
                "metrics": MetricRecord(
                    {
                        "loss": loss,
                        "num-examples": len(loader.dataset),
                        "partition-id": hospital,
                    }
                ),
            }
        ),
        reply_to=msg,
    )


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    model = FindingsNet()
    model.load_state_dict(msg.content.array_records["arrays"].to_torch_state_dict())
    loader = load_data(int(context.node_config["partition-id"]), 32)
    metrics = {"accuracy": label_accuracy(model, loader), "num-examples": len(loader.dataset)}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
