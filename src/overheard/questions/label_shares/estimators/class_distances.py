"""How far apart a network puts the classes, in the inputs of its last layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.learning.features import features_of_models

TINY = 1e-9
"""So that the logarithm of a distance of 0 is finite."""

LARGEST_LOG = 20.0
"""Largest absolute value of a change: an update may move an input to or from 0."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassDistances:
    """What measures distances.

    Args:
        build_model: builds the network; its weights are not used.
        examples: the examples on which it is run, of every class.
        classes: number of classes.
        local: tensors in place of those that stay with each client, the same for all.

    """

    build_model: BuildModel
    examples: Examples
    classes: int
    local: Weights

    def of_updates(
        self, start: Weights, deltas: Sequence[Weights]
    ) -> Float[Tensor, "updates features"]:
        """Return the changes that updates make to a model.

        These are logarithms: of how much each distance between the mean inputs of two classes
        grows, and the spread of each class; and of how far the examples of a class and their
        mean move. No rotation of the inputs changes them.
        """
        whole = {**start, **self.local}
        models = [whole, *({**whole, **_added(start, delta)} for delta in deltas)]
        inputs = features_of_models(self.build_model, models, self.examples.inputs)
        before = next(inputs).double().flatten(1)
        of_class = [self.examples.labels == number for number in range(self.classes)]
        distances, spread, means = _distances(before, of_class)
        rows = []
        for found in inputs:
            after = found.double().flatten(1)
            new_distances, new_spread, new_means = _distances(after, of_class)
            moved = (after - before).square().sum(1)
            rows.append(
                torch.cat(
                    (
                        _log(new_distances) - _log(distances),
                        _log(new_spread) - _log(spread),
                        _log(torch.stack([moved[mine].mean() for mine in of_class])),
                        _log((new_means - means).square().sum(1)),
                    )
                ).clamp(-LARGEST_LOG, LARGEST_LOG)
            )
        return torch.stack(rows)


def measure_class_distances(
    distances: ClassDistances, starts: Sequence[Weights], updates: Sequence[Sequence[Weights]]
) -> Float[Tensor, "clients features"]:
    """Return the changes of clients over several rounds.

    Args:
        distances: what measures them.
        starts: the broadcast of each round.
        updates: of each round, those of all clients.

    """
    return torch.cat(
        [
            distances.of_updates(start, deltas)
            for start, deltas in zip(starts, updates, strict=True)
        ],
        1,
    )


def _added(start: Weights, delta: Weights) -> Weights:
    return {name: start[name] + change for name, change in delta.items() if name in start}


def _log(squares: Tensor) -> Tensor:
    return (squares + TINY).log()


def _distances(
    inputs: Float[Tensor, "examples inputs"], of_class: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return squared distances of the means of classes, spreads of classes, and the means."""
    means = torch.stack([inputs[rows].mean(0) for rows in of_class])
    spread = torch.stack([inputs[rows].var(0, correction=0).sum() for rows in of_class])
    first, second = torch.triu_indices(len(means), len(means), 1)
    return (means[first] - means[second]).square().sum(1), spread, means
