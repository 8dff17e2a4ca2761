"""Fits a network that tells label shares from numbers read off clients."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.chance import seeded
from overheard.learning.threads import one_thread

Loss = Callable[[Tensor, Tensor], Tensor]
"""How far (examples, classes) logits are from (examples, classes) shares: one number."""


@dataclass(frozen=True, slots=True)
class FitSchedule:
    """How such a network is trained: by Adam, on shuffled batches.

    Args:
        epochs: passes over the examples.
        batch: examples a step.
        rate: learning rate.
        slow_after: epochs after which the rate is a tenth; None = never.

    """

    epochs: int
    batch: int
    rate: float = 1e-3
    slow_after: int | None = None

    def __post_init__(self) -> None:
        """Refuse a training that cannot be."""
        if self.epochs < 1 or self.batch < 1 or not self.rate > 0:
            raise ValueError(f"epochs, batch and rate must be above 0, got {self}")


def fit(
    build: Callable[[], nn.Module],
    inputs: Float[Tensor, "examples ..."],
    shares: Float[Tensor, "examples classes"],
    loss: Loss,
    schedule: FitSchedule,
    seed: Seed,
    device: str = "cpu",
) -> nn.Module:
    """Give a network from inputs to logits, trained on all of the examples.

    On one thread, so that the bits do not hang on the number of cores.

    Args:
        build: gives the network with fresh weights.
        inputs: what was read, example by example.
        shares: what is to be told from it.
        loss: what training makes small.
        schedule: how long, and how fast.
        seed: of the fresh weights and of the batches.
        device: to train on; the network that is given back stands on the cpu.

    """
    with one_thread():
        with seeded(seed.child("weights")):
            network = build().to(device).train()
        inputs, shares = inputs.to(device), shares.to(device, inputs.dtype)
        # Fused, steps of networks with millions of weights take half the time on a CPU.
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


def told(
    network: nn.Module, inputs: Float[Tensor, "*many numbers"]
) -> Float[Tensor, "*networks examples classes"]:
    """The shares that a fitted network, or each of several, tells: softmax of its logits."""
    with one_thread():
        shares: Tensor = network(inputs).double().softmax(-1)
    return shares


def divergence(
    logits: Float[Tensor, "examples classes"], shares: Float[Tensor, "examples classes"]
) -> Float[Tensor, ""]:
    """Kullback and Leibler's divergence from softmax to true shares, in nats, example mean."""
    return nn.functional.kl_div(logits.log_softmax(1), shares, reduction="batchmean")
