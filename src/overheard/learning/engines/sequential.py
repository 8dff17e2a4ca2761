"""One member after the other: the reference, and the fastest way for convolutions on a core."""

from collections.abc import Iterator, Sequence
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.messages import Weights
from overheard.learning.batches import epoch_order
from overheard.learning.chance import seeded
from overheard.learning.cohort import Lesson, Member, Trained
from overheard.learning.descent import descent
from overheard.learning.engines.bag import SparseBag, can_stand_in
from overheard.learning.layout import channels_first, channels_last, keep_channels_last
from overheard.learning.loss import mean_loss
from overheard.learning.threads import one_thread


def train_sequentially(
    lesson: Lesson, members: Sequence[Member], model: nn.Module
) -> Iterator[Trained]:
    """Train one member after the other on one core."""
    learner = Learner(lesson, model)
    for member in members:
        yield learner.train(member)


@final
class Learner:
    """Trains members on one model, which is filled with the start weights anew for each.

    Convolutions run in channels-last order (1.3 times a plain loop on a CPU); with ReLU after
    the pool and one call for all parameters' steps, 1.4 to 1.9 times (benchmarks/learning.py).
    """

    def __init__(self, lesson: Lesson, model: nn.Module) -> None:
        check_fits(lesson.start, model)
        self._lesson = lesson
        named = dict(model.named_parameters())
        floats = next(iter(lesson.start.values())).dtype
        self._model = model.to(lesson.device, floats).train()
        if _moves_only_what_has_a_slope(lesson):
            _look_up_sparsely(self._model)
        keep_channels_last(self._model)
        self._parameters: list[Tensor] = list(self._model.parameters())
        self._names = tuple(named)
        self._start = [lesson.start[name].to(lesson.device) for name in named]

    def train(self, member: Member) -> Trained:
        """Train one member."""
        lesson = self._lesson
        chance = lesson.seed.child("dropout", lesson.round, member.name)
        with one_thread(), seeded(chance, lesson.device):
            with torch.no_grad():
                torch._foreach_copy_(self._parameters, self._start)
            loss = self._descend(member)
            moved = torch._foreach_sub([p.detach() for p in self._parameters], self._start)
        delta = zip(self._names, moved, strict=True)
        return Trained(member, {name: part.contiguous().cpu() for name, part in delta}, loss)

    def _descend(self, member: Member) -> float:
        recipe = self._lesson.recipe
        mine = self._lesson.pool.take(member.rows.to(self._lesson.pool.labels.device))
        inputs = channels_last(mine.inputs.to(self._lesson.device))
        labels = mine.labels.to(self._lesson.device)
        walk = descent(recipe, self._parameters)
        total = torch.zeros((), dtype=torch.float64, device=labels.device)
        for epoch in range(recipe.epochs):
            total.zero_()
            order = epoch_order(
                self._lesson.seed, self._lesson.round, member.name, epoch, len(labels)
            ).to(labels.device)
            for batch in torch.split(order, recipe.batch):
                logits = self._model(channels_first(inputs[batch]))
                loss = mean_loss(logits, labels[batch], recipe.loss, recipe.label_smoothing)
                gradients = torch.autograd.grad(loss, self._parameters)
                with torch.no_grad():
                    walk.step(self._parameters, gradients)
                total += loss.detach() * len(batch)
        return float(total) / len(labels)


def check_fits(start: Weights, model: nn.Module) -> None:
    """Refuse start weights that are not those of the model."""
    given = {name: tuple(weight.shape) for name, weight in start.items()}
    wanted = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    if given != wanted:
        raise ValueError(f"the start weights are {given}, and the model's are {wanted}")


def _moves_only_what_has_a_slope(lesson: Lesson) -> bool:
    recipe = lesson.recipe
    return recipe.optimizer == "sgd" and not recipe.momentum and not recipe.weight_decay


def _look_up_sparsely(model: nn.Module) -> None:
    """Have each table give slopes for those rows alone that a batch looked up.

    The others do not move then.
    """
    # In a plain sequence a bag is called with the texts alone, and not with offsets besides.
    sequence = set(model.children()) if type(model) is nn.Sequential else set()
    for name, module in list(model.named_modules()):
        if module in sequence and isinstance(module, nn.EmbeddingBag) and can_stand_in(module):
            model.set_submodule(name, SparseBag(module))
        elif isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            of_maxima = isinstance(module, nn.EmbeddingBag) and module.mode == "max"
            module.sparse = not (of_maxima or module.scale_grad_by_freq)
