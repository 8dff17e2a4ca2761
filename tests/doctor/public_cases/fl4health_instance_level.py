"""As FL4Health's instance-level clients: one engine for all rounds, Poisson batches."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from opacus import PrivacyEngine

from tests.doctor.public_cases.cases_data import Net, load_data, measure


class InstanceLevelClient:
    def __init__(self, partition: int) -> None:
        train_loader, self.val_loader = load_data(partition)
        self.net = Net()
        self.privacy_engine = PrivacyEngine()
        self.model, self.optimizer, self.train_loader = self.privacy_engine.make_private(
            module=self.net,
            optimizer=torch.optim.SGD(self.net.parameters(), lr=0.05),
            data_loader=train_loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            clipping="flat",
        )

    def fit(self) -> int:
        self.model.train()
        for images, labels in self.train_loader:
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(images), labels).backward()
            self.optimizer.step()
        return len(self.train_loader.dataset)


CLIENTS: dict[int, InstanceLevelClient] = {}


def client_of(context: Context) -> InstanceLevelClient:
    """Return the client that lives on this node for all rounds."""
    partition = int(context.node_config["partition-id"])
    if partition not in CLIENTS:
        CLIENTS[partition] = InstanceLevelClient(partition)
    return CLIENTS[partition]


app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    client = client_of(context)
    client.net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    metrics = {"num-examples": client.fit()}
    content = {"arrays": ArrayRecord(client.net.state_dict()), "metrics": MetricRecord(metrics)}
    return Message(content=RecordDict(content), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    client = client_of(context)
    client.net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    loss, accuracy = measure(client.net, client.val_loader)
    metrics = {"loss": loss, "val - accuracy": accuracy, "num-examples": 8}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
