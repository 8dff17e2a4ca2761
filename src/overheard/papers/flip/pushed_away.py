"""Names the class that a binary task tells its primary class from, by what its model does."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_cohort
from overheard.learning.fitting.fit import FitSchedule, divergence, fit


@final
@dataclass(frozen=True, slots=True, eq=False)
class AffinityYardstick:
    """Images of two classes, B1 and B2, and how models set them apart that knew one of them.

    A model of "A or not" was taught "not A" by the class B beside A alone, and so takes images
    of B for "not A" more surely than those of a class that it never saw. How much more surely
    it would anyway, since one of the two may look less like A, is told by models of one's own.

    Args:
        build_model: the network; label 0 is "not A".
        images: of B1 and of B2.
        middle: the lead of B1, see `leads`, above which B1 is named: halfway between that of an
            own model which learned A beside B1, and of one which learned A beside B2.
        device: to compute on.

    """

    build_model: BuildModel
    images: tuple[Float[Tensor, "first ..."], Float[Tensor, "second ..."]]
    middle: float
    device: str = "cpu"

    def leads(self, models: Iterable[Weights]) -> Float[Tensor, " models"]:
        """By each model the chance that an image of B1 is surer to be "not A" than one of B2.

        0 to 1; 0.5 where it sets the two not apart.
        """
        logits = logits_of_cohort(
            self.build_model, models, torch.cat(self.images), device=self.device
        )
        return torch.tensor([lead(one, len(self.images[0])) for one in logits])

    def names_first(self, leads: Float[Tensor, " models"]) -> bool:
        """Whether B1 is named, by the mean over a client's models."""
        return float(leads.mean()) > self.middle


def yardstick(
    build_model: BuildModel,
    auxiliary: tuple[Examples, Examples],
    schedule: FitSchedule,
    seed: Seed,
    device: str = "cpu",
) -> AffinityYardstick:
    """Make one from images of one's own; none of B1 or B2 is a client's.

    Args:
        build_model: the network of the federation.
        auxiliary: images of B1 (0) and A (1), and of B2 (0) and A (1). Own models learn from
            all of A and the first half of each B; the other half is what is held up to models.
        schedule: how own models learn.
        seed: of their weights and batches.
        device: to compute on.

    """
    taught, held_up = zip(*map(_halves, auxiliary), strict=True)
    own = [
        _learned(build_model, one, schedule, seed.child(number), device)
        for number, one in enumerate(taught)
    ]
    bare = AffinityYardstick(build_model, (held_up[0], held_up[1]), 0.5, device)
    return AffinityYardstick(build_model, bare.images, float(bare.leads(own).mean()), device)


def lead(logits: Float[Tensor, "examples classes"], first: int) -> float:
    """The chance that one of the first examples is surer to be of class 0 than one of the rest.

    A tie counts by half.
    """
    sure = logits[:, 0] - logits[:, 1]
    one, other = sure[:first, None], sure[None, first:]
    return float((one > other).double().mean() + 0.5 * (one == other).double().mean())


def _halves(auxiliary: Examples) -> tuple[Examples, Tensor]:
    """What an own model learns from, and the images that are kept from it."""
    others = (auxiliary.labels == 0).nonzero().flatten()
    kept = others[len(others) // 2 :]
    is_taught = torch.ones(len(auxiliary), dtype=torch.bool)
    is_taught[kept] = False
    return auxiliary.take(is_taught), auxiliary.inputs[kept]


def _learned(
    build_model: BuildModel, examples: Examples, schedule: FitSchedule, seed: Seed, device: str
) -> Weights:
    network = fit(
        build_model,
        examples.inputs,
        one_hot(examples.labels, 2).float(),
        divergence,
        schedule,
        seed,
        device,
    )
    return dict(network.named_parameters())
