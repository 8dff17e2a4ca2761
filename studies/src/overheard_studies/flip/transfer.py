"""Transfer of a classifier of two collections to two other collections."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.defense import BuildModel
from overheard.core.seeds import Seed
from overheard.learning.fitting.linear_svm import fit_linear_svm
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)

IMAGES_PER_PASS = 500
"""Images per forward pass; more 32 x 32 images would fill the memory."""

CollectionPair = tuple[Tensor, Tensor]
"""Two collections, in the order of their labels."""


def transfer_network(
    build_model: BuildModel,
    learned: CollectionPair,
    tested: CollectionPair,
    schedule: FitSchedule,
    seed: Seed,
    device: str = "cpu",
) -> tuple[Bool[Tensor, " first"], Bool[Tensor, " second"]]:
    """Train a network on two collections and return which tested examples it assigns correctly.

    Args:
        build_model: network with two classes.
        learned: collections for training, with Adam.
        tested: collections for testing, in the same order.
        schedule: training schedule.
        seed: seed of the weights and batches.
        device: device for training.

    """
    inputs, labels = _labelled(learned)
    network = fit_share_network(
        build_model,
        inputs.float(),
        one_hot(labels, 2).float(),
        kl_divergence,
        schedule,
        seed,
        device,
    )

    def is_second(one: Tensor) -> Tensor:
        shares = [
            predict_shares(network, part) for part in torch.split(one.float(), IMAGES_PER_PASS)
        ]
        return torch.cat(shares).argmax(1) == 1

    first, second = tested
    return ~is_second(first), is_second(second)


def transfer_linear_svm(
    learned: tuple[Float[Tensor, "one params"], Float[Tensor, "two params"]],
    tested: tuple[Float[Tensor, "first params"], Float[Tensor, "second params"]],
    seed: Seed,
) -> tuple[Bool[Tensor, " first"], Bool[Tensor, " second"]]:
    """Do the same with a linear support vector machine, for few vectors of high dimension."""
    vectors, labels = _labelled(learned)
    machine = fit_linear_svm(vectors, labels, 2, seed)
    first, second = (machine.margins(one).argmax(1) for one in tested)
    return first == 0, second == 1


def _labelled(pair: CollectionPair) -> CollectionPair:
    labels = [torch.full((len(one),), number) for number, one in enumerate(pair)]
    return torch.cat(pair), torch.cat(labels)
