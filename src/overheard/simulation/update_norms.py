"""Probes of the norms of an update, by tensor and by input."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.messages import Weights
from overheard.learning.initialization import fresh_model
from overheard.simulation.probe import Probe, ProbeContext

MIN_NORM = 1e-12
"""A lower bound of norms, so that the logarithm of an update of zeros is finite."""

MOST_INPUTS = 256
"""The most inputs that are read one by one; of more, neighbours are pooled."""

LEAST_SHARE = 1e-4
"""Added to the relative square of each input, as some pixels are the same in all images."""


@final
@dataclass(frozen=True, slots=True)
class UpdateNorms(Probe):
    """Natural logarithm of the L2 norm of the whole update, then of each of its tensors.

    Tensors are in the order of the broadcast.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients norms"]:
        """Return the norms of each client's update."""
        names = list(context.broadcast)
        squares = torch.stack(
            [
                torch.stack([delta[name].double().square().sum() for name in names])
                for delta in deltas
            ]
        )  # (clients, tensors)
        norms = torch.cat((squares.sum(1, keepdim=True), squares), 1).sqrt()
        return norms.clamp(min=MIN_NORM).log().float()


@final
@dataclass(frozen=True, slots=True)
class InputNorms(Probe):
    """How the change of the first matrix of weights is spread over its inputs.

    The change that one example causes is the product of an error and an input. So the change of
    an input's column grows with the size of that input in the client's examples, in the units
    of the client. The inputs of an embedding are words, each with a row of its own, which
    grows with how often the word occurs.

    The reading of a client has one number per input, and they sum to 0: the natural logarithm
    of the mean square of the change of its column or row, less the mean logarithm. The length
    of the update changes nothing.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients inputs"]:
        """Return the logarithms of each client; runs no local model."""
        names = list(context.broadcast)
        matrices = [name for name in names if context.broadcast[name].dim() > 1] or names
        first, is_of_words = matrices[0], matrices[0] in _embeddings(context)
        squares = torch.stack(
            [_squares_by_input(delta[first], is_of_words) for delta in deltas]
        )
        relative = squares / squares.mean(1, keepdim=True).clamp(min=MIN_NORM**2)
        logarithms = (relative + LEAST_SHARE).log()
        return (logarithms - logarithms.mean(1, keepdim=True)).float()


def _embeddings(context: ProbeContext) -> frozenset[str]:
    """Return the names of the weights that are embeddings, in the model of the clients."""
    model = fresh_model(context.build_model, context.seed)
    return frozenset(
        f"{name}.weight" if name else "weight"
        for name, module in model.named_modules()
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
    )


def _squares_by_input(change: Tensor, is_of_words: bool) -> Float[Tensor, " inputs"]:
    matrix = change if change.dim() > 1 else change[None]
    columns = matrix.T if is_of_words else matrix.flatten(1)
    squares = columns.double().square().mean(0)
    if len(squares) <= MOST_INPUTS:
        return squares
    pooled = -(-len(squares) // MOST_INPUTS)
    return torch.stack([part.mean() for part in torch.split(squares, pooled)])
