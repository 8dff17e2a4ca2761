"""lstm_tokens: what a forum does."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from lstm_tokens import task

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    model = task.get_model(context.run_config)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    dataset = task.get_dataset(context.node_config["partition-id"])
    loss = task.train(model, dataset, context.run_config)
    content = RecordDict(
        {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord(
                {
                    "loss": loss,
                    "num-examples": len(dataset),
                    "partition-id": context.node_config["partition-id"],
                }
            ),
        }
    )
    return Message(content=content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    model = task.get_model(context.run_config)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    dataset = task.get_dataset(context.node_config["partition-id"])
    metrics = MetricRecord(
        {"accuracy": task.test(model, dataset), "num-examples": len(dataset)}
    )
    return Message(content=RecordDict({"metrics": metrics}), reply_to=message)
