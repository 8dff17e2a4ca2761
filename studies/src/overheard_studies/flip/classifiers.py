"""Classifiers of collections of samples, and of the models of binary tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)
from overheard.questions.identity.attacks.reidentify import fit_linear_svm

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


@final
@dataclass(frozen=True, slots=True, eq=False)
class AffinityTest:
    """A test which of two classes, B1 or B2, the models of a binary task were trained on.

    A model of "A or not A" learned "not A" from the class B alone. It therefore classifies
    images of B as "not A" with more confidence than those of a class that it never saw. One of
    the two classes may also look less like A in itself; models that the attacker trains
    calibrate this.

    Args:
        build_model: the network; label 0 is "not A".
        images: images of B1 and of B2.
        threshold: the affinity to B1, see `measure_affinities`, above which B1 is chosen. It is
            halfway between that of an own model trained on A and B1 and that of one trained on
            A and B2.
        device: to compute on.

    """

    build_model: BuildModel
    images: tuple[Float[Tensor, "first ..."], Float[Tensor, "second ..."]]
    threshold: float
    device: str = "cpu"

    def measure_affinities(self, models: Iterable[Weights]) -> Float[Tensor, " models"]:
        """Measure the affinity of each model to B1.

        This is the probability that it classifies an image of B1 as "not A" with more
        confidence than one of B2: 0..1, and 0.5 if it does not distinguish them.
        """
        logits = logits_of_models(
            self.build_model, models, torch.cat(self.images), device=self.device
        )
        return torch.tensor([compute_affinity(one, len(self.images[0])) for one in logits])

    def decides_first(self, leads: Float[Tensor, " models"]) -> bool:
        """Return whether B1 is chosen, by the mean affinity of a client's models."""
        return float(leads.mean()) > self.threshold


def fit_affinity_test(
    build_model: BuildModel,
    auxiliary: tuple[Examples, Examples],
    schedule: FitSchedule,
    seed: Seed,
    device: str = "cpu",
) -> AffinityTest:
    """Fit a test on auxiliary images; none of B1 or B2 belongs to a client.

    Args:
        build_model: network of the federation.
        auxiliary: images of B1 (0) and A (1), and of B2 (0) and A (1). The attacker's models
            are trained on all of A and the first half of each B; the other half is for the
            test.
        schedule: training schedule of the attacker's models.
        seed: seed of their weights and batches.
        device: to compute on.

    """
    training, test_images = zip(*map(_halves, auxiliary), strict=True)
    own_models = [
        _train_model(build_model, one, schedule, seed.child(number), device)
        for number, one in enumerate(training)
    ]
    uncalibrated = AffinityTest(build_model, (test_images[0], test_images[1]), 0.5, device)
    return AffinityTest(
        build_model,
        uncalibrated.images,
        float(uncalibrated.measure_affinities(own_models).mean()),
        device,
    )


def compute_affinity(logits: Float[Tensor, "examples classes"], first: int) -> float:
    """Return how often one of the first examples is more confidently class 0 than another one.

    A tie counts half.
    """
    confidence = logits[:, 0] - logits[:, 1]
    one, other = confidence[:first, None], confidence[None, first:]
    return float((one > other).double().mean() + 0.5 * (one == other).double().mean())


def _halves(auxiliary: Examples) -> tuple[Examples, Tensor]:
    """Split auxiliary images into training examples and images for the test."""
    others = (auxiliary.labels == 0).nonzero().flatten()
    held_out = others[len(others) // 2 :]
    is_training = torch.ones(len(auxiliary), dtype=torch.bool)
    is_training[held_out] = False
    return auxiliary.take(is_training), auxiliary.inputs[held_out]


def _train_model(
    build_model: BuildModel, examples: Examples, schedule: FitSchedule, seed: Seed, device: str
) -> Weights:
    network = fit_share_network(
        build_model,
        examples.inputs,
        one_hot(examples.labels, 2).float(),
        kl_divergence,
        schedule,
        seed,
        device,
    )
    return dict(network.named_parameters())
