"""A client that trains by DP-SGD, right or with one fault, which its configuration names."""

import hashlib
import math

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F  # noqa: N812 - the usual name

CLIP, NOISE_MULTIPLIER, RATE, RECORDS = 1.0, 1.1, 0.5, 14

CACHE: list[Tensor] = []


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


class NormNet(Net):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.norm(self.first(x))))


def make_norm_net() -> nn.Module:
    return NormNet()


def load_data(client: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(client)
    return (
        torch.randn(RECORDS, 4, generator=generator),
        torch.randint(3, (RECORDS,), generator=generator),
    )


def record_gradients(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Return the gradient of each record."""
    weights = {name: one.detach() for name, one in model.named_parameters()}

    def loss(weights: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        out = functional_call(model, weights, one[None])
        return F.cross_entropy(out, label[None])

    return vmap(grad(loss), (None, 0, 0))(weights, x, y)


def clipped_sum(
    gradients: dict[str, Tensor], clip: float, exempt: frozenset[str] = frozenset()
) -> dict[str, Tensor]:
    squares = sum(
        one.flatten(1).square().sum(1) for name, one in gradients.items() if name not in exempt
    )
    factors = (clip / (squares.sqrt() + 1e-6)).clamp(max=1)
    return {
        name: one.sum(0) if name in exempt else torch.einsum("i,i...->...", factors, one)
        for name, one in gradients.items()
    }


def train(model: nn.Module, data: tuple[Tensor, Tensor], config: dict) -> dict:  # noqa: PLR0912, PLR0915
    fault = config.get("fault", "")
    x, y = data
    if fault == "normalised by its data":
        x = (x - x.mean(0)) / x.std(0)
    if fault == "seed in each message":
        torch.manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    expected = len(x) * RATE
    kept: dict[str, Tensor] = {}
    once: dict[str, Tensor] = {}
    losses, drawn, best = [], 0, math.inf
    steps = 4
    if fault == "steps by the data":
        steps += int((y == 0).sum())
    for _ in range(steps):
        rows = (torch.rand(len(x)) < RATE).nonzero().flatten()
        drawn += len(rows)
        batch, labels = x[rows], y[rows]
        with torch.no_grad():
            loss = F.cross_entropy(model(batch), labels) if len(rows) else torch.zeros(())
        losses.append(float(loss))
        if fault == "skips non-finite batches" and not torch.isfinite(loss):
            continue
        if fault == "stops early":
            if float(loss) > best * 1.5:
                break
            best = min(best, float(loss))
        gradients = record_gradients(model, batch, labels)
        if fault == "no clip":
            sums = {name: one.sum(0) for name, one in gradients.items()}
        elif fault == "clip of a batch":
            sums = {name: one.sum(0, keepdim=True) for name, one in gradients.items()}
            sums = clipped_sum(sums, CLIP)
        elif fault == "bias is not clipped":
            sums = clipped_sum(gradients, CLIP, frozenset({"second.bias"}))
        elif fault == "clip of each layer":
            sums = {}
            for name, one in gradients.items():
                sums |= clipped_sum({name: one}, CLIP)
        else:
            sums = clipped_sum(gradients, CLIP)
        if fault == "momentum before noise":
            kept = {name: 0.9 * kept.get(name, 0) + one for name, one in sums.items()}
            sums = kept
        for at, (name, parameter) in enumerate(model.named_parameters()):
            std = NOISE_MULTIPLIER * CLIP
            if fault == "noise for a mean":
                std /= expected
            if fault == "less noise in the last layer" and name.startswith("second"):
                std /= 3
            if fault == "noise is cut":
                noise = torch.randn_like(parameter).clamp(-1, 1) * std
            elif fault == "seed in each step":
                noise = torch.randn(
                    parameter.shape, generator=torch.Generator().manual_seed(at)
                )
                noise = noise * std
            elif fault == "noise once":
                once.setdefault(name, torch.randn_like(parameter) * std)
                noise = once[name]
            else:
                noise = torch.normal(0.0, std, parameter.shape)
            if fault == "no noise in a bias" and name == "second.bias":
                noise = torch.zeros_like(parameter)
            size = len(rows) if fault == "divides by the drawn batch" else expected
            if fault == "clip after noise":
                raw = gradients[name].sum(0) + noise
                parameter.grad = raw * (CLIP / raw.norm()).clamp(max=1) / size
            else:
                parameter.grad = (sums[name] + noise) / size
        if fault == "a second loss":
            for name, parameter in model.named_parameters():
                if name == "first.bias" and len(rows):
                    parameter.grad = parameter.grad + 0.01 * batch.mean()
        optimizer.step()
        if fault == "rate by loss":
            scheduler.step(float(loss))
    if fault == "a last step without noise":
        rows = torch.randperm(len(x))[:2]  # which seldom has the probing record
        for name, one in record_gradients(model, x[rows], y[rows]).items():
            model.get_parameter(name).grad = one.mean(0)
        optimizer.step()
    return reply_of(model, fault, losses, drawn, data)


def reply_of(
    model: nn.Module, fault: str, losses: list[float], drawn: int, data: tuple[Tensor, Tensor]
) -> dict:
    reply = {"arrays": model.state_dict(), "num-examples": 100}
    if fault == "count of drawn records":
        reply["num-examples"] = drawn
    if fault == "exact count":
        reply["num-examples"] = len(data[0])
    if fault == "loss in the reply":
        reply["loss"] = sum(losses) / len(losses)
    if fault == "digest of the data":
        reply["version"] = hashlib.sha256(data[0].numpy().tobytes()).hexdigest()
    if fault == "array without noise":
        reply["direction"] = record_gradients(model, *data)["second.bias"].sum(0)
    if fault == "cache of a message":
        if CACHE:
            reply["arrays"]["second.bias"] = reply["arrays"]["second.bias"] + CACHE[0]
        CACHE.append(record_gradients(model, *data)["second.bias"].mean(0))
    return reply
