"""causal_lora: a practice fine-tunes on its notes."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from peft import get_peft_model_state_dict, set_peft_model_state_dict

from causal_lora.task import get_model, load_data
from causal_lora.task import train as train_fn

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    partition_id = int(context.node_config["partition-id"])
    trainloader = load_data(partition_id, context.run_config)
    model = get_model(context.run_config)
    set_peft_model_state_dict(model, msg.content["arrays"].to_torch_state_dict())
    train_loss = train_fn(model, trainloader, context.run_config)
    metrics = {
        "train_loss": train_loss,
        "num-examples": len(trainloader.dataset),
        "partition-id": partition_id,
    }
    content = RecordDict(
        {
            "arrays": ArrayRecord(get_peft_model_state_dict(model)),
            "metrics": MetricRecord(metrics),
        }
    )
    return Message(content=content, reply_to=msg)
