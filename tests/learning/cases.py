"""Small models and data, and the plain loop to which every engine is compared."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples, without_classes
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.batches import epoch_order
from overheard.learning.initialization import initial_weights
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.learning.sent_tensors import trainable_parameters
from overheard.learning.training_job import ClientTask

SEED = Seed(5)

TABLE = Task((6,), ("a", "b", "c"))
IMAGES = Task((2, 8, 8), ("a", "b", "c"))
NUMBERS = Task((6,), ("x", "y", "z"), kind="regression")
SEVERAL = Task((6,), ("a", "b", "c"), kind="multi_label")
TEXTS = Task((7,), ("a", "b", "c"), vocabulary=30)

MLP: BuildModel = partial(Mlp(hidden=(5, 4)).build, TABLE)
CONVOLUTIONS: BuildModel = partial(DecafConv2(first=3, second=4, hidden=5).build, IMAGES)
WORDS: BuildModel = partial(TextBag(dim=4, hidden=5).build, TEXTS)
READING: BuildModel = partial(Lstm(dim=4, hidden=5).build, TEXTS)

CLIENTS = (
    ClientTask("client/0", torch.arange(0, 11)),
    ClientTask("client/1", torch.arange(11, 14)),
    ClientTask("client/2", torch.arange(14, 30)),
    ClientTask("client/3", torch.arange(20, 28)),
)
"""Unequal sizes: full batches of 4 with a rest, less than one batch, full batches only."""

RECIPES = {
    "sgd": Recipe(rate=0.1, epochs=6, batch=4),
    "momentum": Recipe(rate=0.1, epochs=6, batch=4, momentum=0.9, weight_decay=0.01),
    "adam": Recipe(rate=0.01, epochs=6, batch=4, optimizer="adam", weight_decay=0.01),
    "adamw": Recipe(rate=0.01, epochs=6, batch=4, optimizer="adamw", weight_decay=0.5),
    "adadelta": Recipe(rate=1.0, epochs=6, batch=4, optimizer="adadelta", weight_decay=0.01),
    "smoothed": Recipe(rate=0.1, epochs=6, batch=4, label_smoothing=0.3),
    "rated": Recipe(rate=0.1, epochs=6, batch=4, loss="squared_error"),
    "proximal": Recipe(rate=0.1, epochs=6, batch=4, proximal=0.5),
}
"""Six epochs of client/2 are 24 steps."""

FLOAT_LABEL_RECIPES = {
    "numbers": (NUMBERS, Recipe(rate=0.1, epochs=6, batch=4, loss="squared_error")),
    "several labels": (
        SEVERAL,
        Recipe(rate=0.1, epochs=6, batch=4, loss="binary_cross_entropy"),
    ),
}
"""Tasks without classes, each with a loss of its own."""


NORMED = partial(ConvNet(blocks=1, width=36).build, IMAGES)
"""Its norm trains together with the layers around it."""


def dropping() -> nn.Module:
    """A network with dropout."""
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))


def batch_normed() -> nn.Module:
    """A network for images with two batch norms; the second takes a plain mean over steps."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, bias=False),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(108, 5),
        nn.BatchNorm1d(5, momentum=None),
        nn.Linear(5, 3),
    )


def image_normed() -> nn.Module:
    """A network for images with a batch norm of running statistics."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(108, 3)
    )


def pool_of(task: Task, dtype: torch.dtype, examples: int = 30) -> Examples:
    """Random examples."""
    generator = Seed(11).generator()
    if task.vocabulary is not None:
        size = (examples, *task.shape)
        inputs = torch.randint(0, task.vocabulary, size, generator=generator)
    else:
        inputs = torch.randn(examples, *task.shape, generator=generator).to(dtype)
    if task.kind == "regression":
        rows = torch.randn(examples, task.outputs, generator=generator)
        return without_classes(inputs, rows)
    if task.kind == "multi_label":
        rows = torch.randint(0, 2, (examples, task.outputs), generator=generator)
        return without_classes(inputs, rows.float())
    return Examples(inputs, torch.randint(0, task.classes, (examples,), generator=generator))


def start_of(build_model: BuildModel, dtype: torch.dtype = torch.float64) -> Weights:
    """Weights to start from."""
    return {name: w.to(dtype) for name, w in initial_weights(build_model, SEED).items()}


def plain_loop(
    build_model: BuildModel, start: Weights, pool: Examples, member: ClientTask, recipe: Recipe
) -> tuple[dict[str, Tensor], float]:
    """Train by a plain loop; return the change and the mean loss of the last epoch."""
    model = build_model().to(next(iter(start.values())).dtype)
    model.load_state_dict(dict(start), strict=False)  # counters of a batch norm stay
    optimizer = _optimizer(model, recipe)
    for epoch in range(member.epochs or recipe.epochs):
        losses = 0.0
        order = epoch_order(SEED, 3, member.name, epoch, len(member.rows))
        for batch in member.rows[order].split(recipe.batch):
            optimizer.zero_grad()
            loss = _loss(model(pool.inputs[batch]), pool.loss_labels[batch], recipe)
            (loss + _added_terms(model, start, member, recipe)).backward()
            optimizer.step()
            losses += float(loss.detach()) * len(batch)
    state = model.state_dict()
    change = {name: state[name] - begin for name, begin in start.items()}
    return change, losses / len(member.rows)


def _added_terms(
    model: nn.Module, start: Weights, member: ClientTask, recipe: Recipe
) -> Tensor:
    """The proximal penalty, and a linear term whose gradient is the client's correction."""
    total = torch.zeros((), dtype=torch.float64)
    for name, weight in trainable_parameters(model).items():
        total = total + recipe.proximal / 2 * (weight - start[name]).square().sum()
        if member.correction is not None:
            total = total + (member.correction[name] * weight).sum()
    return total


def _loss(logits: Tensor, labels: Tensor, recipe: Recipe) -> Tensor:
    if recipe.loss == "binary_cross_entropy":
        right = torch.where(labels > 0, logits.sigmoid(), 1 - logits.sigmoid())
        return -right.log().sum() / labels.numel()
    if recipe.loss == "squared_error" and labels.is_floating_point():
        return ((logits - labels) ** 2).sum() / labels.numel()
    if recipe.loss == "squared_error":
        shares = logits.exp() / logits.exp().sum(1, keepdim=True)
        expected = sum(rating * shares[:, rating] for rating in range(logits.shape[1]))
        return ((expected - labels) ** 2).sum() / len(labels)
    return functional.cross_entropy(logits, labels, label_smoothing=recipe.label_smoothing)


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    settings = {"lr": recipe.rate, "weight_decay": recipe.weight_decay}
    if recipe.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), **settings)
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), **settings)
    if recipe.optimizer == "adadelta":
        return torch.optim.Adadelta(model.parameters(), **settings)
    return torch.optim.SGD(model.parameters(), momentum=recipe.momentum, **settings)


def largest_difference(one: Weights, other: Weights) -> float:
    """The largest difference between two sets of weights."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def same_bits(one: Weights, other: Weights) -> bool:
    """Whether all numbers are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)
