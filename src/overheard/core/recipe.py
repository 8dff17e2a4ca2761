"""How a client turns a broadcast into an update."""

from dataclasses import dataclass
from typing import Literal

OptimizerName = Literal["sgd", "adam", "adadelta"]

LossName = Literal["cross_entropy", "squared_error"]

LARGEST = 3e38
"""About the largest float32, as which a number meets the weights."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Local training: minibatch descent on the mean loss of a batch.

    The loss is the cross-entropy or, where labels are ratings in order, such as stars, the
    squared error of the rating that the model expects: (sum over c of c softmax_c - label)^2.
    Orekondy et al. 2018 (Gradient-Leaks, Section 5.1) have one linear output for the rating.
    Here each rating keeps an output of its own, so that models, their last layer and what reads
    it stay as they are; an expected rating never leaves the range of the ratings, and its slope
    fades where the softmax is sure of itself.

    Args:
        rate: the local learning rate (Adadelta: PyTorch's, which multiplies a unit-free step).
        epochs: passes over the client's examples a round.
        batch: examples a step; the last step of an epoch takes what is left.
        optimizer: its state starts anew every round, as FedAvg has it.
        momentum: of SGD only.
        weight_decay: L2, added to the gradient as PyTorch does.
        label_smoothing: s in the target (1 - s) one-hot + s / classes, PyTorch's definition;
            of the cross-entropy only.
        loss: what is made small, on average over a batch.

    """

    rate: float
    epochs: int
    batch: int
    optimizer: OptimizerName = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    loss: LossName = "cross_entropy"

    def __post_init__(self) -> None:
        """Refuse a training that cannot be."""
        if not 0 < self.rate < LARGEST:
            raise ValueError(f"rate must be above 0 and below {LARGEST}, got {self.rate}")
        if self.epochs < 1 or self.batch < 1:
            raise ValueError(
                f"epochs and batch must be 1 or more, got {self.epochs} and {self.batch}"
            )
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum lies in [0, 1), got {self.momentum}")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum is SGD's: leave it out for {self.optimizer}")
        if not 0 <= self.weight_decay < LARGEST:
            raise ValueError(
                f"weight_decay must be 0 or more and below {LARGEST}, got {self.weight_decay}"
            )
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing lies in [0, 1), got {self.label_smoothing}")
        if self.label_smoothing and self.loss != "cross_entropy":
            raise ValueError(
                f"label_smoothing spreads a target over classes: leave it out for {self.loss}"
            )

    def steps(self, examples: int) -> int:
        """How many optimiser steps a client of this size takes in a round."""
        return self.epochs * -(-examples // self.batch)
