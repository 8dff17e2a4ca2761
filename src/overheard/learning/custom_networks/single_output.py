"""Networks with a single output: the logit of the second of two classes, or one number.

A network for two classes may put out one logit z, trained by the binary cross-entropy of
sigmoid(z). The cross-entropy of the two logits (0, z) is the same loss, with the same
gradients. So such a network is read as one of two classes, whose first logit is 0.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.errors import PlanError
from overheard.core.task import Task

PROBED_INPUTS = 64
"""Random inputs on which a network is tried for outputs that are probabilities."""

PROBED_SIZE = 1e3
"""Their standard deviation: a logit of such inputs is nearly never between 0 and 1."""


def fit_single_output(network: nn.Module, task: Task, outputs: Tensor) -> bool:
    """Let a network with one output put out what the task expects; its tensors do not change.

    Of two classes, the output becomes two logits, 0 and its own. One number per example without
    an axis of its own, (examples,), becomes (examples, 1). A last `nn.Sigmoid` is left out, as
    losses and attacks read logits.

    Args:
        network: the network; it is changed in place.
        task: what it is for.
        outputs: what it returned for one example.

    Returns:
        Whether it is such a network.

    Raises:
        PlanError: if it returns probabilities, and no module shows where they are made.

    """
    has_two_classes = task.has_classes and task.classes == 2
    if outputs.numel() != 1 or not (has_two_classes or task.outputs == 1):
        return False
    if task.kind != "regression":
        _leave_out_sigmoid(network)
        _refuse_probabilities(network, task)
    network.register_forward_hook(_two_logits if has_two_classes else _one_column)
    return True


def without_output_hooks(network: nn.Module) -> nn.Module:
    """Let the network return its outputs as they are, as rows; for one without last layer."""
    hooks = network._forward_hooks  # torch has no other way to find one
    for key, hook in list(hooks.items()):
        if hook in {_two_logits, _one_column}:
            del hooks[key]
            network.register_forward_hook(_rows)
    return network


def has_single_logit(network: nn.Module) -> bool:
    """Return whether `fit_single_output` made two logits of the output of the network."""
    return _two_logits in network._forward_hooks.values()


def change_by_class(
    change: Float[Tensor, "outputs *features"],
) -> Float[Tensor, "classes *features"]:
    """Return the change of the last layer by class; that of a single logit counts twice.

    The gradients of the logits of two classes are opposite: p - y and y - p.
    """
    return change if len(change) > 1 else torch.cat((-change, change))


def weight_by_class(
    weight: Float[Tensor, "outputs *features"],
) -> Float[Tensor, "classes *features"]:
    """Return the last layer's weight or bias by class: of a single logit, the first is 0."""
    return weight if len(weight) > 1 else torch.cat((torch.zeros_like(weight), weight))


def _two_logits(
    _network: nn.Module, inputs: tuple[Tensor, ...], outputs: Tensor
) -> Float[Tensor, "examples 2"]:
    column = _one_column(_network, inputs, outputs)
    return torch.cat((torch.zeros_like(column), column), 1)


def _one_column(
    _network: nn.Module, inputs: tuple[Tensor, ...], outputs: Tensor
) -> Float[Tensor, "examples 1"]:
    return outputs.reshape(len(inputs[0]), 1)


def _rows(
    _network: nn.Module, inputs: tuple[Tensor, ...], outputs: Shaped[Tensor, "..."]
) -> Shaped[Tensor, "examples numbers"]:
    # A network that drops the axis of its output may drop that of a single example too.
    return outputs.reshape(len(inputs[0]), -1)


def _leave_out_sigmoid(network: nn.Module) -> None:
    *_, (name, last) = network.named_modules()
    if name and isinstance(last, nn.Sigmoid):
        parent, _, own = name.rpartition(".")
        setattr(network.get_submodule(parent), own, nn.Identity())


def _refuse_probabilities(network: nn.Module, task: Task) -> None:
    """Refuse outputs between 0 and 1 whatever the input, which are no logits."""
    if task.vocabulary is not None or any(one.is_meta for one in network.parameters()):
        return
    draws = torch.Generator().manual_seed(0)
    inputs = PROBED_SIZE * torch.randn(PROBED_INPUTS, *task.shape, generator=draws)
    was_training = network.training
    with torch.no_grad():
        outputs = network.eval()(inputs)
    network.train(was_training)
    if bool(((outputs >= 0) & (outputs <= 1)).all()) and bool((outputs != outputs[:1]).any()):
        raise PlanError(
            "the network returns a probability, and must return a logit: leave the sigmoid out "
            "of forward, or make it an nn.Sigmoid as the last module of the network"
        )
