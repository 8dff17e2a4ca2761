"""As Flower's fl-dp-sa: clipping at the client, noise for a cohort that is not there."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp.strategy import DifferentialPrivacyClientSideFixedClipping, FedAvg

from tests.doctor.public_cases.cases_data import Net, load_data, measure

NUM_SAMPLED_CLIENTS = 20

app = ClientApp(mods=[fixedclipping_mod])


@app.train()
def train(msg: Message, context: Context) -> Message:
    train_loader, val_loader = load_data(int(context.node_config["partition-id"]))
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for images, labels in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    train_loss, train_accuracy = measure(model, train_loader)
    val_loss, val_accuracy = measure(model, val_loader)
    metrics = {
        "num-examples": len(train_loader.dataset),
        "train_loss": train_loss,
        "train_accuracy": train_accuracy,
        "val_loss": val_loss,
        "val_accuracy": val_accuracy,
    }
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord(metrics)}
    return Message(content=RecordDict(content), reply_to=msg)


def make_strategy() -> DifferentialPrivacyClientSideFixedClipping:
    fedavg = FedAvg(
        fraction_train=0.2,
        min_train_nodes=int(NUM_SAMPLED_CLIENTS * 0.2),
        min_available_nodes=4,
        fraction_evaluate=0.0,
    )
    return DifferentialPrivacyClientSideFixedClipping(
        fedavg,
        noise_multiplier=0.2,
        clipping_norm=10.0,
        num_sampled_clients=NUM_SAMPLED_CLIENTS,
    )
