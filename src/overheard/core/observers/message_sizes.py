"""Sizes of messages in bytes."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    MessageBody,
    MissingReply,
    Update,
    Weights,
)

if TYPE_CHECKING:  # so that `overheard show` need not load torch
    import torch


class SizedWeights(Mapping[str, "torch.Tensor"]):
    """Weights that state their size without being read."""

    __slots__ = ()

    @abstractmethod
    def count_bytes(self) -> int:
        """Return the bytes of all numbers as they were sent, each at its own width."""


def count_bytes(body: MessageBody) -> int:
    """Return the bytes of the tensors in a message; 0 if it has none.

    Every number counts at its own width. Compression or a sparse encoding would need less.
    Names, sizes, metrics and encryption are not counted.
    """
    match body:
        case Broadcast():
            sent = (body.weights, body.control)
        case Update():
            sent = (body.delta, body.control)
        case Aggregate():
            sent = (body.delta, None)
        case DistilledSet():
            parts = (body.inputs, body.labels, body.rates, body.counts)
            return sum(part.numel() * part.element_size() for part in parts)
        case Evaluation() | MissingReply():
            return 0
    return sum(_weights_bytes(weights) for weights in sent if weights is not None)


def _weights_bytes(weights: Weights) -> int:
    if isinstance(weights, SizedWeights):
        return weights.count_bytes()
    return sum(one.numel() * one.element_size() for one in weights.values())
