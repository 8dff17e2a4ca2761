"""The interface for running and differentiating the networks of many clients at once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.learning.engines.dropout_noise import DropoutNoise


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
        noise: DropoutNoise | None = None,
        clip: float | None = None,
    ) -> Float[Tensor, " clients"]:
        """Write the gradient of each client's loss in place, and return the losses.

        A client's loss is the weighted sum of the losses of its examples.

        Args:
            gradients: where to write, in the order of the parameters.
            parameters: the parameters of each client.
            inputs: the batch of each client.
            labels: its labels.
            weights: its weights; 0 for examples that pad a batch.
            noise: draws the factors of dropout; None = nothing is dropped.
            clip: largest L2 norm of an example's gradient over all parameters, after its
                weight; None = no gradient is clipped.

        """
