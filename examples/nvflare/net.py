"""The network that the sites train."""

from torch import nn


class Net(nn.Sequential):
    """One hidden layer, for images of 8 x 8."""

    def __init__(self) -> None:
        """Start from weights of PyTorch's own choosing."""
        super().__init__(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
