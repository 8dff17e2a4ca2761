"""Training of a network that predicts label shares from features of clients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Settings
from overheard.learning.precision import computing
from overheard.learning.seeding import seeded
from overheard.learning.threads import single_thread

ShareLoss = Callable[[Tensor, Tensor], Tensor]
"""A scalar loss of (examples, classes) logits and (examples, classes) shares."""


@dataclass(frozen=True, slots=True)
class FitSchedule(Settings):
    """Settings of the training by Adam on shuffled batches.

    Args:
        epochs: passes over the examples.
        batch: examples per step.
        rate: learning rate.
        slow_after: epochs after which the rate drops to a tenth; None = never.

    """

    epochs: Positive
    batch: Positive
    rate: Annotated[float, Gt(0)] = 1e-3
    slow_after: int | None = None


def fit_share_network(
    build: Callable[[], nn.Module],
    inputs: Float[Tensor, "examples ..."],
    shares: Float[Tensor, "examples classes"],
    loss: ShareLoss,
    schedule: FitSchedule,
    seed: Seed,
    device: str = "cpu",
) -> nn.Module:
    """Fit a network from inputs to logits on all examples.

    It trains on one thread, so that the bits do not depend on the number of cores.

    Args:
        build: builds the network with fresh weights.
        inputs: inputs of each example.
        shares: label shares to predict.
        loss: loss to minimize.
        schedule: settings of the training.
        seed: seed of the initial weights and of the batches.
        device: where to train; the returned network is on the CPU.

    """
    with single_thread(), computing("float32"):
        with seeded(seed.child("weights")):
            network = build().to(device).train()
        inputs, shares = inputs.to(device), shares.to(device, inputs.dtype)
        # With `fused`, steps of networks with millions of weights take half the time on a CPU.
        optimizer = torch.optim.Adam(network.parameters(), lr=schedule.rate, fused=True)
        for epoch in range(schedule.epochs):
            if epoch == schedule.slow_after:
                for group in optimizer.param_groups:
                    group["lr"] = schedule.rate / 10
            generator = seed.child("order", epoch).generator()
            order = torch.randperm(len(inputs), generator=generator).to(device)
            for rows in torch.split(order, schedule.batch):
                optimizer.zero_grad()
                torch.autograd.backward(loss(network(inputs[rows]), shares[rows]))
                optimizer.step()
    return network.cpu().eval().requires_grad_(False)


def predict_shares(
    network: nn.Module, inputs: Float[Tensor, "*many numbers"]
) -> Float[Tensor, "*networks examples classes"]:
    """Return the shares that one or several fitted networks predict: softmax of the logits."""
    with single_thread():
        shares: Tensor = network(inputs).double().softmax(-1)
    return shares


def kl_divergence(
    logits: Float[Tensor, "examples classes"], shares: Float[Tensor, "examples classes"]
) -> Float[Tensor, ""]:
    """Return the mean Kullback-Leibler divergence KL(true shares || softmax), in nats."""
    return nn.functional.kl_div(logits.log_softmax(1), shares, reduction="batchmean")
