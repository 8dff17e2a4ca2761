"""The interface for running and differentiating the networks of many clients at once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float, Shaped
from torch import Tensor


class StackedNetworks(ABC):
    """Networks of one architecture, with the parameters of many clients along a first axis.

    The loss and the `label_smoothing` of its targets are arguments of the constructor.
    """

    @abstractmethod
    def logits(
        self,
        parameters: Sequence[Shaped[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
    ) -> Float[Tensor, "clients examples classes"]:
        """Run the network of each client on its own inputs."""

    @abstractmethod
    def write_gradients(
        self,
        gradients: Sequence[Float[Tensor, "clients ..."]],
        parameters: Sequence[Float[Tensor, "clients ..."]],
        inputs: Shaped[Tensor, "clients examples ..."],
        labels: Shaped[Tensor, "clients examples ..."],
        weights: Float[Tensor, "clients examples"],
    ) -> Float[Tensor, " clients"]:
        """Write the gradient of each client's loss in place, and return the losses.

        A client's loss is the weighted sum of the losses of its examples.
        """
