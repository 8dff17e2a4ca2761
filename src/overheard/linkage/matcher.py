"""Networks that say of two vectors whether they are of one person."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.chance import seeded
from overheard.learning.threads import one_thread

WIDTH = 128
"""Units of every layer (section 4.3 of the paper)."""

FORGETTING = 0.9
SMALLEST = 1e-7
"""Keras' settings of RMSProp, in which the paper's attacks were written."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs to learn from: of each the row of a left vector, that of a right one, the answer.

    Args:
        left: rows of the left vectors.
        right: rows of the right vectors.
        match: whether both are of one person.

    """

    left: Int[Tensor, " pairs"]
    right: Int[Tensor, " pairs"]
    match: Bool[Tensor, " pairs"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Matcher:
    """What was learned: where each side's vectors are mapped to, and how far apart is near.

    Args:
        network: whose last layer weighs the distances in each of `WIDTH` numbers.

    """

    network: "_Network"

    def probabilities(
        self, left: Float[Tensor, "left dims"], right: Float[Tensor, "right others"]
    ) -> Float[Tensor, "left right"]:
        """The chance that each on the left is of one person with each on the right, float64."""
        with one_thread(), torch.no_grad():
            one, other = self.network.left(left.float()), self.network.right(right.float())
            weight = self.network.last.weight[0]
            logits = self.network.last.bias.double().expand(len(one), len(other))
            # Sums of weighted distances, parted by sign so that each is a distance itself.
            for sign in (1.0, -1.0):
                chosen = weight * sign > 0
                scale = weight[chosen].abs()
                logits = logits + sign * torch.cdist(
                    (one[:, chosen] * scale).double(), (other[:, chosen] * scale).double(), p=1
                )
            return logits.sigmoid()


def fit_siamese(
    vectors: Float[Tensor, "updates dims"],
    pairs: Pairs,
    seed: Seed,
    *,
    batch: int = 32,
    rate: float = 1e-3,
) -> Matcher:
    """A network that compares vectors of one kind, both mapped by the same two layers.

    Orekondy et al. (Gradient-Leaks), section 4.3 and Fig. 3b: two fully connected layers of 128
    ReLUs, |e - e'| number by number, one unit with a sigmoid; binary cross-entropy, RMSProp at
    rate 1e-3. Not told there: the batch, and how long.

    Args:
        vectors: which both rows of a pair are of.
        pairs: each is learned from once, in this order.
        seed: of the fresh weights.
        batch: pairs a step.
        rate: of RMSProp.

    """
    with one_thread():
        with seeded(seed):
            twin = nn.Sequential(_layer(vectors.shape[1]), nn.ReLU(), _layer(WIDTH), nn.ReLU())
            network = _Network(twin, twin)
        return _fitted(network, vectors.float(), vectors.float(), pairs, batch, rate)


def fit_cross_modal(
    updates: Float[Tensor, "updates dims"],
    embeddings: Float[Tensor, "people others"],
    pairs: Pairs,
    seed: Seed,
    *,
    batch: int = 32,
    rate: float = 1e-3,
) -> Matcher:
    """The same for vectors of two kinds, each mapped by one layer of its own (Fig. 3c).

    Args:
        updates: which the left rows of pairs are of.
        embeddings: which the right rows are of.
        pairs: each is learned from once, in this order.
        seed: of the fresh weights.
        batch: pairs a step.
        rate: of RMSProp.

    """
    with one_thread():
        with seeded(seed):
            sides = [
                nn.Sequential(_layer(kind.shape[1]), nn.ReLU())
                for kind in (updates, embeddings)
            ]
            network = _Network(*sides)
        return _fitted(network, updates.float(), embeddings.float(), pairs, batch, rate)


def _fitted(
    network: "_Network", left: Tensor, right: Tensor, pairs: Pairs, batch: int, rate: float
) -> Matcher:
    optimizer = torch.optim.RMSprop(
        network.parameters(), lr=rate, alpha=FORGETTING, eps=SMALLEST
    )
    for rows in torch.split(torch.arange(len(pairs.match)), batch):
        optimizer.zero_grad()
        logits = network(left[pairs.left[rows]], right[pairs.right[rows]])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, pairs.match[rows].float())
        torch.autograd.backward(loss)
        optimizer.step()
    return Matcher(network.eval().requires_grad_(False))


def _layer(inputs: int) -> nn.Linear:
    """Fresh as Keras has it: Glorot and Bengio 2010, eq. 16; biases 0."""
    layer = nn.Linear(inputs, WIDTH)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@final
class _Network(nn.Module):
    """Two sides, the distance between them, and one unit that judges it."""

    def __init__(self, left: nn.Module, right: nn.Module) -> None:
        super().__init__()
        self.left, self.right = left, right
        self.last = nn.Linear(WIDTH, 1)
        nn.init.xavier_uniform_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        told: Tensor = self.last((self.left(left) - self.right(right)).abs())
        return told[:, 0]
