"""Whether clients were sent different models in a round, as in clustered federated learning."""

from collections.abc import Iterable, Sequence

import torch

from overheard.archive.weights import StoredWeights, tensor_shapes
from overheard.consistency.message_faults import list_rounds
from overheard.consistency.proof import MessageFault
from overheard.core.messages import Broadcast, Message, Weights

CLUSTERS_MEND = (
    "record each cluster as a run of its own: the clients that are sent one model, and their "
    "replies"
)
"""What to do about rounds with several models."""


def count_models(round_messages: Iterable[Message]) -> int:
    """Return how many different models were broadcast in a round.

    A model that is sent to evaluate it and then to train it counts once.
    """
    found = list[Weights]()
    for message in round_messages:
        if isinstance(message.body, Broadcast):
            weights = message.body.weights
            if not any(_are_same(weights, one) for one in found):
                found.append(weights)
    return len(found)


def clusters_fault(models: Sequence[tuple[int, int]]) -> MessageFault | None:
    """Return the fault of a recording in which clients were sent different models.

    An attack takes one model a round for the one that all clients began from, so that its
    claims about the others would be wrong.

    Args:
        models: each round with several models, and how many these are.

    """
    if not models:
        return None
    most = max(count for _, count in models)
    rounds = [number for number, _ in models]
    return MessageFault(
        rounds[0],
        None,
        f"in {list_rounds(rounds)} clients were sent different models, up to {most} in a "
        "round, as in clustered federated learning. Attacks take one model a round for that of "
        "all clients",
        CLUSTERS_MEND,
    )


def _are_same(one: Weights, other: Weights) -> bool:
    if tensor_shapes(one) != tensor_shapes(other):
        return False
    if isinstance(one, StoredWeights) and isinstance(other, StoredWeights) and one.sha256:
        return one.sha256 == other.sha256
    return all(torch.equal(one[name], other[name]) for name in one)
