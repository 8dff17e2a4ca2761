"""As Flower's Opacus example trains: an engine in each message, whose epsilon is sent."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from opacus import PrivacyEngine

from tests.doctor.public_cases.cases_data import Net, load_data, measure

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    partition = int(context.node_config["partition-id"])
    train_loader, _ = load_data(partition)
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    privacy_engine = PrivacyEngine(secure_mode=False)
    private, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=1.0 if partition % 2 == 0 else 1.5,
        max_grad_norm=1.0,
    )
    private.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(private(images), labels).backward()
        optimizer.step()
    epsilon = privacy_engine.get_epsilon(delta=1e-5)
    metrics = {"num-examples": len(train_loader.dataset), "epsilon": float(epsilon)}
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord(metrics)}
    return Message(content=RecordDict(content), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    _, test_loader = load_data(int(context.node_config["partition-id"]))
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    loss, accuracy = measure(model, test_loader)
    metrics = {"loss": loss, "accuracy": accuracy, "num-examples": len(test_loader.dataset)}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
