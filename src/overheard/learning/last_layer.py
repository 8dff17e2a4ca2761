"""The last linear layer, whose outputs are the logits of the classes."""

from dataclasses import dataclass
from typing import final

from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.errors import NeedsError
from overheard.learning.custom_networks.single_output import has_single_logit
from overheard.learning.sent_tensors import trainable_parameters


@dataclass(frozen=True, slots=True)
class LastLayer:
    """Names of the last linear layer's parameters, as they are sent.

    A tensor that several layers share has the name that it has in the first of them. `bias` is
    None if none is sent.
    """

    weight: str
    bias: str | None


def find_last_layer(model: nn.Module, classes: int | None = None) -> LastLayer:
    """Find the last `nn.Linear`, in the order in which modules were registered.

    >>> find_last_layer(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)))
    LastLayer(weight='2.weight', bias='2.bias')

    Args:
        model: the network.
        classes: number of outputs that it must have; None = any.

    Raises:
        NeedsError: if the model has no linear layer, if that layer is frozen, or if it has
            another number of outputs.

    """
    name = last_linear_module(model)
    module = model.get_submodule(name)
    assert isinstance(module, nn.Linear), "it was found as one"
    sent = {id(one): name for name, one in trainable_parameters(model).items()}
    weight = sent.get(id(module.weight))
    if weight is None:
        own = f"{name}.weight" if name else "weight"
        raise NeedsError(
            f"the attack reads the last layer, but {own}, the last nn.Linear of "
            f"{type(model).__name__}, is frozen and never sent: train the last layer whole, "
            "without an adapter, or choose attacks that read all that is sent"
        )
    outputs = 2 if has_single_logit(model) else module.out_features
    if classes is not None and outputs != classes:
        raise NeedsError(
            f"the attack reads the last layer, whose outputs are the classes, but {weight} has "
            f"{module.out_features} outputs, and the task has {classes} classes"
        )
    return LastLayer(weight, sent.get(id(module.bias)))


def last_linear_module(model: nn.Module) -> str:
    """Return the name of the last `nn.Linear`; empty if it is the model itself.

    Raises:
        NeedsError: if the model has none.

    """
    linear: list[str] = [
        name for name, module in model.named_modules() if isinstance(module, nn.Linear)
    ]
    if not linear:
        raise NeedsError(
            f"the attack reads the last layer, an nn.Linear with one output per class, but "
            f"{type(model).__name__} has no nn.Linear"
        )
    return linear[-1]


@final
class DroppedLinear(nn.Linear):
    """An `nn.Dropout` and a linear layer, with the parameter names of a plain linear layer.

    Wrapping both in an `nn.Sequential` would rename the parameters, and weights are matched by
    name. The dropout is a submodule, so that the training engine can see that a forward pass is
    random.
    """

    def __init__(self, linear: nn.Linear, rate: float) -> None:
        # `nn.Linear` would draw weights, which advances a generator.
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight = linear.weight
        self.bias = linear.bias
        self.dropout = nn.Dropout(rate)

    def forward(
        self, input: Float[Tensor, "*examples inputs"]
    ) -> Float[Tensor, "*examples outputs"]:
        """Apply dropout, then the linear layer."""
        dropped: Tensor = self.dropout(input)
        return super().forward(dropped)
