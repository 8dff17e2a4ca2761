"""Contract tests for model architectures."""

from functools import partial

import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.custom_networks.single_output import has_single_logit
from overheard.learning.initialization import initial_weights
from overheard.learning.last_layer import find_last_layer
from overheard.learning.model import Model
from overheard.learning.sent_tensors import trainable_parameters
from overheard.testing.require import are_weights_equal, require, require_part

TEN_CLASSES = tuple("0123456789")

TASKS = (
    Task((1, 28, 28), TEN_CLASSES),
    Task((3, 32, 32), TEN_CLASSES),
    Task((14,), ("<=50K", ">50K")),
    Task((40,), TEN_CLASSES[:4], vocabulary=1000),
    Task((14,), ("age",), kind="regression"),
    Task((3, 32, 32), ("cat", "dog", "child"), kind="multi_label"),
)
"""Grey and colour images, a table, and texts; a number to predict, and several labels."""


def check_model(model: Model, task: Task | None = None) -> None:
    """Check that an architecture satisfies the contract of architectures.

    Args:
        model: the architecture.
        task: its task; by default images, a table and texts. It must accept some of these, and
            refuse the others with a PlanError.

    Raises:
        AssertionError: naming the violated rule.

    """
    require_part(model)
    accepted = 0
    for one in TASKS if task is None else (task,):
        try:
            model.build(one)
        except PlanError as error:
            require(
                str(error).strip() and task is None,
                f"{model.name} refuses its task: {error}",
            )
            continue
        accepted += 1
        builds_a_valid_network(model, one)
    require(
        accepted, f"{model.name} accepts neither images nor tables nor texts: pass its task"
    )


def builds_a_valid_network(model: Model, task: Task) -> None:
    """Check that the network for a task can be trained and sent, and its last layer read."""
    build, name = partial(model.build, task), model.name
    network = build().eval()
    inputs = torch.zeros(2, *task.shape, dtype=torch.float32)
    if task.vocabulary is not None:
        inputs = inputs.long() + 1
    with torch.no_grad():
        shape = tuple(network(inputs).shape)
    require(
        shape == (2, task.outputs),
        f"{name} returns outputs of shape {shape} for 2 examples of a task with "
        f"{task.outputs} outputs",
    )
    softmax = any(isinstance(part, nn.Softmax | nn.LogSoftmax) for part in network.modules())
    require(not softmax, f"{name} has a softmax: remove it, as the loss includes one")
    weight = trainable_parameters(network).get(find_last_layer(network).weight, torch.empty(0))
    require(
        len(weight) == (1 if has_single_logit(network) else task.outputs),
        f"{name}: its last layer must be trained, and have one output per class, label or "
        "number of the task, or one for two classes",
    )
    first, again = initial_weights(build, Seed(0)), initial_weights(build, Seed(0))
    require(
        are_weights_equal(first, again),
        f"{name}: the same seed gives different initial weights",
    )
    other = initial_weights(build, Seed(1))
    require(
        not are_weights_equal(first, other),
        f"{name}: another seed gives the same initial weights",
    )
