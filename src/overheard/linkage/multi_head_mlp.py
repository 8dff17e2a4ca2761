"""A multi-head perceptron: one shared hidden layer, and one softmax output a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
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

TRAINING_STEPS = 10_000
"""Steps of all attacks that train this network, so that they can be compared. From 3,000 to
10,000 steps top-1 gains 3.3 points with shadow devices and 2.0 with simulated updates (WISDM),
and 17 points on blogs (`overheard reproduce deanonymization/steps`)."""


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
    steps: int = TRAINING_STEPS,
    batch: int = 32,
) -> MultiHeadMlp:
    """Train a perceptron with one hidden layer of ReLUs, and one softmax for each question.

    The attack model of Orekondy et al. 2018 (Gradient-Leaks, section 4.3 and Fig. 3a). With a
    second head it is the model of section 6.1.3 (Fig. 3d): minibatch SGD on the unweighted sum
    of the heads' cross-entropies. Initial weights are those of Keras, which the authors used
    (Glorot and Bengio 2010, eq. 16; biases 0). The paper gives neither the number of steps nor
    the batch size; the batch size here is Keras' default of 32. An unlabelled update adds
    nothing to the loss of that head.

    The weights move only in the space that the updates span. If these are fewer than their
    numbers, the network is trained on their coordinates there: 214 updates of 5,000 numbers
    take a fifth of the time.

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
        steps: training steps; each pass takes the updates in another order.
        batch: updates a step.

    """
    if not classes or len(labels) != len(classes):
        raise ValueError(
            f"each head needs its labels: got {len(labels)} lists for {len(classes)} heads"
        )
    if not len(vectors) or steps < 1 or batch < 1:
        raise ValueError("fitting needs at least one update, one step and a batch of one")
    inputs = vectors.float()
    with single_thread():
        with seeded(seed.child("weights")):
            network = _Network(inputs.shape[1], hidden, classes)
        start, basis = network.body.weight.detach(), None
        if len(inputs) < inputs.shape[1]:
            basis = torch.linalg.qr(inputs.T).Q  # (dims, updates)
            inputs = inputs @ basis  # (updates, updates)
            network.body.weight = nn.Parameter(start @ basis)
        optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=momentum)
        for step, rows in enumerate(_batches(len(inputs), batch, steps, seed)):
            for group in optimizer.param_groups:
                group["lr"] = rate / (1 + decay * step)
            optimizer.zero_grad()
            logits = network(inputs[rows])
            torch.autograd.backward(_loss(logits, [each[rows] for each in labels]))
            optimizer.step()
        if basis is not None:
            change = network.body.weight.detach() - start @ basis
            network.body.weight = nn.Parameter(start + change @ basis.T)
    return MultiHeadMlp(network.eval().requires_grad_(False))


def _batches(
    updates: int, batch: int, steps: int, seed: Seed
) -> Iterator[Int[Tensor, " rows"]]:
    """Yield the rows of each step, pass by pass."""
    for number in count():
        order = torch.randperm(updates, generator=seed.child("order", number).generator())
        batches = torch.split(order, batch)[:steps]
        yield from batches
        steps -= len(batches)
        if not steps:
            return


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
