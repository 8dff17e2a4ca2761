"""Clients that train with Opacus itself, right or with one fault, named in their settings."""

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the usual name
from torch.utils.data import DataLoader, TensorDataset

CLIP, NOISE_MULTIPLIER, RECORDS, BATCH = 0.5, 1.1, 24, 8


class NormNet(nn.Module):
    """Statistics of a batch, computed by hand: Opacus refuses a layer of batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        if len(hidden) > 1:
            hidden = (hidden - hidden.mean(0)) / (hidden.std(0) + 1e-3)
        return self.second(torch.tanh(hidden))


def make_net() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))


def make_norm_net() -> nn.Module:
    return NormNet()


def make_layer_of_batch_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))


def load_data(client: int) -> DataLoader:
    generator = torch.Generator().manual_seed(client)
    x = torch.rand(RECORDS, 5, generator=generator)
    y = torch.randint(3, (RECORDS,), generator=generator)
    return DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)


def train(model: nn.Module, data: DataLoader, config: dict) -> dict:
    fault = config.get("fault", "")
    if fault == "seed in each message":
        torch.manual_seed(7)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5),
        data_loader=data,
        noise_multiplier=0.0 if fault == "no noise" else NOISE_MULTIPLIER,
        max_grad_norm=CLIP,
        poisson_sampling=fault != "shuffled",
    )
    if fault == "less noise than stated":
        optimizer.noise_multiplier = 0.4
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if fault == "steps past the engine":
            for parameter in model.parameters():
                parameter.grad = parameter.grad_sample.mean(0)
            optimizer.original_optimizer.step()
        else:
            optimizer.step()
        total += float(loss)
    reply = {"weights": [one.detach().numpy() for one in model.parameters()]}
    if fault == "loss in the reply":
        reply["metrics"] = {"train_loss": total}
    return reply
