"""A client whose optimizer has the attributes and the steps of Opacus's."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the usual name
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(5, 7), nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.layer(x)))


class Records(Dataset):
    """Records as dictionaries, which have no tensors of all data."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> dict:
        generator = torch.Generator().manual_seed(index)
        return {"img": torch.rand(5, generator=generator), "label": index % 2}


class PoissonBatches:
    def __init__(self, records: int, rate: float, steps: int) -> None:
        self.records, self.rate, self.steps = records, rate, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self):
        for _ in range(self.steps):
            yield (torch.rand(self.records) < self.rate).nonzero().flatten().tolist()


def get_loader(client: int):
    records = Records()
    batches = PoissonBatches(len(records), 0.5, 3)
    return DataLoader(records, batch_sampler=batches, num_workers=2)


class RecordGradients:
    """Notes inputs and gradients of outputs of linear layers, as the hooks of Opacus do."""

    def __init__(self, model: nn.Module) -> None:
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(self.forward)
                layer.register_full_backward_hook(self.backward)

    def forward(self, layer, inputs, output) -> None:
        layer.noted = inputs[0].detach()

    def backward(self, layer, grad_input, grad_output) -> None:
        back = grad_output[0] * len(grad_output[0])  # the loss is a mean
        layer.weight.grad_sample = torch.einsum("ni,nj->nij", back, layer.noted)
        layer.bias.grad_sample = back


class PrivateOptimizer(torch.optim.Optimizer):
    def __init__(self, optimizer, noise_multiplier, max_grad_norm, expected_batch_size) -> None:
        self.original_optimizer = optimizer
        self.noise_multiplier, self.max_grad_norm = noise_multiplier, max_grad_norm
        self.expected_batch_size = expected_batch_size

    @property
    def params(self):
        return self.original_optimizer.param_groups[0]["params"]

    def zero_grad(self, set_to_none=True):
        self.original_optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        samples = [p.grad_sample for p in self.params]
        norms = torch.stack([s.flatten(1).norm(dim=1) for s in samples]).norm(dim=0)
        factors = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1)
        for p in self.params:
            p.summed_grad = torch.einsum("i,i...", factors, p.grad_sample)
        for p in self.params:
            std = self.noise_multiplier * self.max_grad_norm
            noise = torch.normal(mean=0, std=std, size=p.summed_grad.shape)
            p.grad = (p.summed_grad + noise).view_as(p) / self.expected_batch_size
        return self.original_optimizer.step()


def train(model, loader, config):
    RecordGradients(model)
    plain = torch.optim.Adam(model.parameters(), lr=0.01)
    optimizer = PrivateOptimizer(plain, float(config.get("noise", 1.3)), 0.7, 12)
    for batch in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(batch["img"]), batch["label"]).backward()
        optimizer.step()
    return [one.detach().numpy() for one in model.parameters()], 100, {"epsilon": 1.5}
