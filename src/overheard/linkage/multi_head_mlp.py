"""A multi-head perceptron: one shared hidden layer, and one softmax output a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from overheard.core.seeds import Seed
from overheard.learning.seeding import seeded
from overheard.learning.threads import single_thread

UNLABELLED = -1
"""The label of an update that a head does not learn from."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class MultiHeadMlp:
    """A trained multi-head perceptron.

    Args:
        network: returns the logits of each head.

    """

    network: "_Network"

    def log_probabilities(
        self, vectors: Float[Tensor, "updates dims"]
    ) -> tuple[Float[Tensor, "updates _classes"], ...]:
        """Return the log-probabilities of each head's labels, in float64."""
        with single_thread(), torch.no_grad():
            return tuple(
                logits.double().log_softmax(1) for logits in self.network(vectors.float())
            )


def fit_multi_head_mlp(
    vectors: Float[Tensor, "updates dims"],
    labels: Sequence[Int[Tensor, " updates"]],
    classes: Sequence[int],
    seed: Seed,
    *,
    hidden: int = 128,
    rate: float = 0.01,
    momentum: float = 0.9,
    decay: float = 1e-6,
    epochs: int = 100,
    batch: int = 32,
) -> MultiHeadMlp:
    """Train a perceptron with one hidden layer of ReLUs, and one softmax for each question.

    The attack model of Orekondy et al. 2018 (Gradient-Leaks, section 4.3 and Fig. 3a). With a
    second head it is the model of section 6.1.3 (Fig. 3d): minibatch SGD on the unweighted sum
    of the heads' cross-entropies. Initial weights are those of Keras, which the authors used
    (Glorot and Bengio 2010, eq. 16; biases 0). The paper gives neither the number of epochs nor
    the batch size; the batch size here is Keras' default of 32. An unlabelled update adds
    nothing to the loss of that head.

    Args:
        vectors: one an update.
        labels: labels for each head, 0 to classes - 1, one an update; `UNLABELLED` =
            unlabelled.
        classes: number of labels of each head.
        seed: seed of the initial weights and of the batches.
        hidden: units of the shared layer.
        rate: learning rate of the first step.
        momentum: momentum of SGD.
        decay: decay of the rate, as in Keras: rate / (1 + decay * step).
        epochs: passes over the updates.
        batch: updates a step.

    """
    if not classes or len(labels) != len(classes):
        raise ValueError(
            f"each head needs its labels: got {len(labels)} lists for {len(classes)} heads"
        )
    if not len(vectors) or epochs < 1 or batch < 1:
        raise ValueError("fitting needs at least one update, one epoch and a batch of one")
    inputs = vectors.float()
    with single_thread():
        with seeded(seed.child("weights")):
            network = _Network(inputs.shape[1], hidden, classes)
        optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=momentum)
        step = 0
        for epoch in range(epochs):
            order = torch.randperm(
                len(inputs), generator=seed.child("order", epoch).generator()
            )
            for rows in torch.split(order, batch):
                for group in optimizer.param_groups:
                    group["lr"] = rate / (1 + decay * step)
                optimizer.zero_grad()
                logits = network(inputs[rows])
                torch.autograd.backward(_loss(logits, [each[rows] for each in labels]))
                optimizer.step()
                step += 1
    return MultiHeadMlp(network.eval().requires_grad_(False))


def _loss(outputs: Sequence[Tensor], labels: Sequence[Tensor]) -> Tensor:
    """Divide by the size of the batch, so that unlabelled updates do not change the weights."""
    total = torch.zeros(())
    for logits, head_labels in zip(outputs, labels, strict=True):
        total = total + cross_entropy(
            logits, head_labels, ignore_index=UNLABELLED, reduction="sum"
        )
    return total / len(labels[0])


@final
class _Network(nn.Module):
    """A hidden layer, and one linear output layer a head."""

    def __init__(self, dims: int, hidden: int, classes: Sequence[int]) -> None:
        super().__init__()
        self.body = _glorot_layer(dims, hidden)
        self.heads = nn.ModuleList(_glorot_layer(hidden, count) for count in classes)

    def forward(self, vectors: Tensor) -> tuple[Tensor, ...]:
        hidden = self.body(vectors).relu()
        return tuple(head(hidden) for head in self.heads)


def _glorot_layer(dims: int, units: int) -> nn.Linear:
    layer = nn.Linear(dims, units)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
