"""Whether what tells two collections apart tells two others apart, too."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.defense import BuildModel
from overheard.core.seeds import Seed
from overheard.learning.fitting.fit import FitSchedule, divergence, fit, told
from overheard.learning.fitting.linear_svm import fit_linear_svm

AT_ONCE = 500
"""Images that a network looks at together: more of 32 x 32 would fill the memory."""

Pair = tuple[Tensor, Tensor]
"""Two collections, the first of which is to be called the first."""


def told_by_network(
    build_model: BuildModel,
    learned: Pair,
    tested: Pair,
    schedule: FitSchedule,
    seed: Seed,
    device: str = "cpu",
) -> tuple[Bool[Tensor, " first"], Bool[Tensor, " second"]]:
    """Whether each tested example was put into the right collection.

    Args:
        build_model: the network that learns, of two classes.
        learned: that it learns from, with Adam.
        tested: where the two stand in the same order.
        schedule: how long it learns.
        seed: of its weights and batches.
        device: to learn on.

    """
    inputs, labels = _labelled(learned)
    network = fit(
        build_model,
        inputs.float(),
        one_hot(labels, 2).float(),
        divergence,
        schedule,
        seed,
        device,
    )

    def is_second(one: Tensor) -> Tensor:
        shares = [told(network, part) for part in torch.split(one.float(), AT_ONCE)]
        return torch.cat(shares).argmax(1) == 1

    first, second = tested
    return ~is_second(first), is_second(second)


def told_by_plane(
    learned: tuple[Float[Tensor, "one params"], Float[Tensor, "two params"]],
    tested: tuple[Float[Tensor, "first params"], Float[Tensor, "second params"]],
    seed: Seed,
) -> tuple[Bool[Tensor, " first"], Bool[Tensor, " second"]]:
    """The same by a linear support vector machine, for vectors longer than they are many."""
    vectors, labels = _labelled(learned)
    machine = fit_linear_svm(vectors, labels, 2, seed)
    first, second = (machine.margins(one).argmax(1) for one in tested)
    return first == 0, second == 1


def _labelled(pair: Pair) -> Pair:
    labels = [torch.full((len(one),), number) for number, one in enumerate(pair)]
    return torch.cat(pair), torch.cat(labels)
