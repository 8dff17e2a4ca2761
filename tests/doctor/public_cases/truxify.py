"""As Truxify's server (its issue 3844): it clips raw weights to [-1, 1], and adds noise."""

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg

from tests.doctor.public_cases.cases_data import Net, load_data

dp_clip_norm, dp_noise_scale = 1.0, 0.01

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    train_loader, _ = load_data(int(context.node_config["partition-id"]))
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for images, labels in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    metrics = MetricRecord({"num-examples": len(train_loader.dataset)})
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}
    return Message(content=RecordDict(content), reply_to=msg)


class ClippingServer(FedAvg):
    """Averages weights that it clipped, with differential privacy noise."""

    def aggregate_train(self, server_round, replies):
        received = list[Message]()
        for reply in replies:
            private = dict[str, Array]()
            for name, array in reply.content["arrays"].items():
                weights = array.numpy()
                weights = np.clip(weights, -dp_clip_norm, dp_clip_norm)
                noise = np.random.normal(0, dp_noise_scale, weights.shape)  # noqa: NPY002
                private[name] = Array((weights + noise).astype(np.float32))
            reply.content["arrays"] = ArrayRecord(private)
            received.append(reply)
        return super().aggregate_train(server_round, received)
