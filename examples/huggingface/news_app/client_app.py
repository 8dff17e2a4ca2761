"""The client app: train the adapter and the classifier, and send nothing else."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from peft import get_peft_model_state_dict, set_peft_model_state_dict

from news_app.news import news_of_client
from news_app.task import get_model, train

app = ClientApp()


@app.train()
def fit(message: Message, context: Context) -> Message:
    """Train the received adapter, and send it back."""
    torch.set_num_threads(1)
    config, partition = context.run_config, context.node_config["partition-id"]
    news = news_of_client(int(partition))
    model = get_model(config)
    set_peft_model_state_dict(model, message.content["arrays"].to_torch_state_dict())
    # get_model sets the seed, so that without this all rounds would draw the same batches.
    torch.seed()
    loss = train(model, news, config["learning-rate"], config["epochs"], config["batch"])
    metrics = MetricRecord(
        {"train-loss": loss, "num-examples": len(news), "partition-id": partition}
    )
    arrays = ArrayRecord(get_peft_model_state_dict(model))
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
