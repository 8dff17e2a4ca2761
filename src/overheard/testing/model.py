"""What every architecture must keep to."""

from functools import partial

import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initial import initial_weights
from overheard.learning.last_layer import last_layer
from overheard.learning.model import Model
from overheard.testing.require import is_same, require, require_part

TEN = tuple("0123456789")

TASKS = (
    Task((1, 28, 28), TEN),
    Task((3, 32, 32), TEN),
    Task((14,), ("<=50K", ">50K")),
    Task((40,), TEN[:4], vocabulary=1000),
)
"""Images in grey and in colour, a table, texts."""


def check_model(model: Model, task: Task | None = None) -> None:
    """Hold an architecture to the contract of architectures.

    Args:
        model: to be tried.
        task: what it is for; left out: images, a table and texts, of which it must take some,
            and must refuse the others by a PlanError.

    Raises:
        AssertionError: saying what it does not keep to.

    """
    require_part(model)
    taken = 0
    for one in TASKS if task is None else (task,):
        try:
            model.build(one)
        except PlanError as error:
            require(
                str(error).strip() and task is None,
                f"{model.name} refuses the task that it is for: {error}",
            )
            continue
        taken += 1
        fits_a_task(model, one)
    require(taken, f"{model.name} takes neither images nor tables nor texts: give its task")


def fits_a_task(model: Model, task: Task) -> None:
    """See that what it builds for a task can be trained, sent and read."""
    build, name = partial(model.build, task), model.name
    network = build().eval()
    inputs = torch.zeros(2, *task.shape, dtype=torch.float32)
    if task.vocabulary is not None:
        inputs = inputs.long() + 1
    with torch.no_grad():
        shape = tuple(network(inputs).shape)
    require(shape == (2, task.classes), f"{name} answers 2 examples by {shape}")
    require(not list(network.buffers()), f"{name} has buffers, which do not travel")
    softmax = any(isinstance(part, nn.Softmax | nn.LogSoftmax) for part in network.modules())
    require(not softmax, f"{name} ends in a softmax: the loss has its own")
    weight = dict(network.named_parameters())[last_layer(network).weight]
    require(len(weight) == task.classes, f"{name}: its last layer has not one output a class")
    first, again = initial_weights(build, Seed(0)), initial_weights(build, Seed(0))
    require(is_same(first, again), f"{name}: the same seed gives other first weights")
    other = initial_weights(build, Seed(1))
    require(not is_same(first, other), f"{name}: another seed gives the same first weights")
