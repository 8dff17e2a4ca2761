"""The contract of a way to run many members' networks, and to differentiate them, at once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float, Int, Shaped
from torch import Tensor


class StackedGradients(ABC):
    """Knows one architecture, whose parameters of many members stand along a first axis.

    It knows the loss too, and the targets: smoothed by the `label_smoothing` that it is made
    with.
    """

    @abstractmethod
    def logits(
        self,
        parameters: Sequence[Shaped[Tensor, "members ..."]],
        inputs: Shaped[Tensor, "members examples ..."],
    ) -> Float[Tensor, "members examples classes"]:
        """Run each member's network on its own inputs."""

    @abstractmethod
    def fill(
        self,
        gradients: Sequence[Float[Tensor, "members ..."]],
        parameters: Sequence[Float[Tensor, "members ..."]],
        inputs: Shaped[Tensor, "members examples ..."],
        labels: Int[Tensor, "members examples"],
        weights: Float[Tensor, "members examples"],
    ) -> Float[Tensor, " members"]:
        """Write the gradient of each member's loss in place, and give the losses.

        A member's loss is the sum of its examples' losses, each times its weight.
        """
