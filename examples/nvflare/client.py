"""A site: train the global model on its own digits, and send it back."""

import argparse
from pathlib import Path

import numpy as np
import nvflare.client as flare
import torch
from net import Net
from torch import nn

EPOCHS, BATCH, RATE = 2, 16, 0.1


def main() -> None:
    """Handle tasks until the job is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()

    flare.init()
    with np.load(arguments.data / f"{flare.get_site_name()}.npz") as site_data:
        inputs = torch.from_numpy(site_data["inputs"])
        labels = torch.from_numpy(site_data["labels"])
    model = Net()
    while flare.is_running():
        received = flare.receive()
        if received is None:
            break
        model.load_state_dict({name: torch.as_tensor(p) for name, p in received.params.items()})
        loss = train(model, inputs, labels)
        flare.send(
            flare.FLModel(
                params=model.state_dict(),
                metrics={"train_loss": loss},
                # FedAvg weights updates by this number, here the site's number of digits.
                meta={"NUM_STEPS_CURRENT_ROUND": len(labels)},
            )
        )


def train(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    """Train with minibatch SGD, and return the mean loss of the last epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(EPOCHS):
        losses.clear()
        for batch in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


if __name__ == "__main__":
    main()
