"""Siamese networks that decide whether two vectors belong to the same user."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.seeding import seeded
from overheard.learning.threads import single_thread

WIDTH = 128
"""Units of every layer (section 4.3 of the paper)."""

RMSPROP_ALPHA = 0.9
RMSPROP_EPSILON = 1e-7
"""Defaults of Keras' RMSProp, which the paper's attacks used."""


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """Training pairs of left and right vectors.

    Args:
        left: rows of the left vectors.
        right: rows of the right vectors.
        match: whether both belong to the same user.

    """

    left: Int[Tensor, " pairs"]
    right: Int[Tensor, " pairs"]
    match: Bool[Tensor, " pairs"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Matcher:
    """A trained matching network.

    Args:
        network: its last layer weights the distance in each of `WIDTH` dimensions.

    """

    network: "_Network"

    def probabilities(
        self, left: Float[Tensor, "left dims"], right: Float[Tensor, "right others"]
    ) -> Float[Tensor, "left right"]:
        """Return the probability of a match for each left-right pair, in float64."""
        with single_thread(), torch.no_grad():
            left_vectors, right_vectors = (
                self.network.left(left.float()),
                self.network.right(right.float()),
            )
            weight = self.network.last.weight[0]
            logits = self.network.last.bias.double().expand(
                len(left_vectors), len(right_vectors)
            )
            # Weighted sums of distances, split by sign so that each part is an L1 distance.
            for sign in (1.0, -1.0):
                has_sign = weight * sign > 0
                scale = weight[has_sign].abs()
                logits = logits + sign * torch.cdist(
                    (left_vectors[:, has_sign] * scale).double(),
                    (right_vectors[:, has_sign] * scale).double(),
                    p=1,
                )
            return logits.sigmoid()


def fit_siamese(
    vectors: Float[Tensor, "updates dims"],
    pairs: TrainingPairs,
    seed: Seed,
    *,
    batch: int = 32,
    rate: float = 1e-3,
) -> Matcher:
    """Train a network that maps both vectors of a pair by the same two layers.

    Orekondy et al. (Gradient-Leaks), section 4.3 and Fig. 3b: two fully connected layers of 128
    ReLUs, |e - e'| elementwise, one unit with a sigmoid; binary cross-entropy, RMSProp at rate
    1e-3. The paper gives neither the batch size nor the number of steps.

    Args:
        vectors: the vectors; both rows of a pair refer to them.
        pairs: training pairs, each used once, in this order.
        seed: seed of the initial weights.
        batch: pairs a step.
        rate: learning rate of RMSProp.

    """
    with single_thread():
        with seeded(seed):
            encoder = nn.Sequential(
                _layer(vectors.shape[1]), nn.ReLU(), _layer(WIDTH), nn.ReLU()
            )
            network = _Network(encoder, encoder)
        return _fit(network, vectors.float(), vectors.float(), pairs, batch, rate)


def fit_cross_modal(
    updates: Float[Tensor, "updates dims"],
    embeddings: Float[Tensor, "users others"],
    pairs: TrainingPairs,
    seed: Seed,
    *,
    batch: int = 32,
    rate: float = 1e-3,
) -> Matcher:
    """Train a network that maps updates and embeddings by one layer each (Fig. 3c).

    Args:
        updates: the left vectors.
        embeddings: the right vectors.
        pairs: training pairs, each used once, in this order.
        seed: seed of the initial weights.
        batch: pairs a step.
        rate: learning rate of RMSProp.

    """
    with single_thread():
        with seeded(seed):
            encoders = [
                nn.Sequential(_layer(vectors.shape[1]), nn.ReLU())
                for vectors in (updates, embeddings)
            ]
            network = _Network(*encoders)
        return _fit(network, updates.float(), embeddings.float(), pairs, batch, rate)


def _fit(
    network: "_Network",
    left: Tensor,
    right: Tensor,
    pairs: TrainingPairs,
    batch: int,
    rate: float,
) -> Matcher:
    optimizer = torch.optim.RMSprop(
        network.parameters(), lr=rate, alpha=RMSPROP_ALPHA, eps=RMSPROP_EPSILON
    )
    for rows in torch.split(torch.arange(len(pairs.match)), batch):
        optimizer.zero_grad()
        logits = network(left[pairs.left[rows]], right[pairs.right[rows]])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, pairs.match[rows].float())
        torch.autograd.backward(loss)
        optimizer.step()
    return Matcher(network.eval().requires_grad_(False))


def _layer(inputs: int) -> nn.Linear:
    """Return a layer with Keras' initial weights: Glorot and Bengio 2010, eq. 16; biases 0."""
    layer = nn.Linear(inputs, WIDTH)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@final
class _Network(nn.Module):
    """Two encoders, the distance between their outputs, and one unit that scores it."""

    def __init__(self, left: nn.Module, right: nn.Module) -> None:
        super().__init__()
        self.left, self.right = left, right
        self.last = nn.Linear(WIDTH, 1)
        nn.init.xavier_uniform_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        logits: Tensor = self.last((self.left(left) - self.right(right)).abs())
        return logits[:, 0]
