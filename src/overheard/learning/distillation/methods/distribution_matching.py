"""Distribution matching: synthetic examples that random networks take for the real ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.func import functional_call

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import LARGEST
from overheard.core.seeds import Seed
from overheard.learning.cohort import Member
from overheard.learning.distillation.distillation import (
    Distillation,
    Distilled,
    Distiller,
    Lacking,
)
from overheard.learning.distillation.moments import Moments, Pace, step
from overheard.learning.distillation.pupil import SyntheticPupil
from overheard.learning.distillation.synthetic import Synthetic
from overheard.learning.features import headless
from overheard.learning.initial import fresh, initial_weights


@final
@dataclass(frozen=True, slots=True)
class DistributionMatching(Distillation):
    """Examples whose mean features, class by class, are those of the real ones.

    In every step a network with fresh random weights, the same for all clients, gives features:
    what its last layer would read. A client draws examples of each class, and moves the
    synthetic ones of the class down the slope of the squared distance between the two mean
    features; nothing is trained, and no slope of a slope is taken. Its labels stay whole, and
    its learning rates as they were: neither tells how often a client has a class, apart from
    whether it has any.

    A client's step is down its own distance; the mean of all clients' steps is one down their
    mean distance, so a federation of one step a round learns what one that pooled the data
    would, where all classes count alike. The model is several passes over the last round's set
    from the first weights, which all clients have.

    The source starts from real examples, which a client would send out as they are: here from
    noise, for which its rate of 1 with momentum 0.5 is slow. It trains models for 1,000 passes
    with augmentation, which is left out here.

    Args:
        samples: synthetic examples of each class.
        steps: of distillation in a round, each through a network of its own.
        batch: a client's own examples of each class that a step looks at; all, where it holds
            fewer.
        input_rate: of plain descent.
        first_rate: of each synthetic example, in training on the set.
        passes: over the set, in that training.
        at_once: synthetic examples that a step of that training learns from.
        halve_every: after how many rounds each the input rate is halved; 0 = never.
        lacking: what is done where a client lacks a class; under "average" it counts with
            synthetic examples of the class as it got them.

    """

    samples: int = 10
    steps: int = 1
    batch: int = 64
    input_rate: float = 20.0
    first_rate: float = 0.01
    passes: int = 20
    at_once: int = 10
    halve_every: int = 0
    lacking: Lacking = "mask"

    name: ClassVar[str] = "distribution_matching"
    source: ClassVar[str] = (
        "Zhao and Bilen 2023 (Dataset Condensation with Distribution Matching, WACV), equation "
        "(6) and Algorithm 1, without augmentation"
    )

    def __post_init__(self) -> None:
        """Refuse a distillation that cannot be."""
        if min(self.samples, self.steps, self.batch, self.passes, self.at_once) < 1:
            raise ValueError(
                f"samples, steps, batch, passes and at_once are 1 or more, got {self}"
            )
        for name in ("input_rate", "first_rate"):
            if not 0 < getattr(self, name) < LARGEST:
                raise ValueError(f"{name} is above 0, got {getattr(self, name)}")
        if self.halve_every < 0:
            raise ValueError(f"halve_every is 0 or more, got {self.halve_every}")

    def distiller(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> "MatchingDistiller":
        """Random networks of this kind, and training from these first weights."""
        return MatchingDistiller(self, build_model, start, device)


@final
class MatchingDistiller(Distiller):
    """Looks through random networks, and trains on what was distilled.

    Args:
        how: how many steps, and which.
        build_model: gives the networks.
        start: weights before training on synthetic examples.
        device: where to compute.

    Raises:
        PlanError: if nothing can be distilled through such a network.

    """

    def __init__(
        self,
        how: DistributionMatching,
        build_model: BuildModel,
        start: Weights,
        device: torch.device | str,
    ) -> None:
        self._how = how
        self._pupil = SyntheticPupil(build_model, start, how.at_once, device)
        self._build_headless = partial(headless, build_model)
        self._headless = fresh(self._build_headless, Seed(0)).to(device)

    def train(self, examples: Synthetic) -> list[Weights]:
        """The weights after all passes over each member's set, on the cpu."""
        return self._pupil.train(
            examples.map(lambda one: torch.cat([one] * self._how.passes, 1))
        )

    def distil(
        self,
        shared: Synthetic,
        pool: Examples,
        members: Sequence[Member],
        moments: Moments,
        *,
        round: int,
        scale: float,
        seed: Seed,
    ) -> Distilled:
        """Each member steps towards the mean features of its own draws."""
        how = self._how
        pace = Pace(how.input_rate, 0.0, 0.0, "sgd")
        examples = shared.map(
            lambda one: one.to(self._pupil.device).expand(len(members), *one.shape).clone()
        )
        owned = [_by_class(pool, member, shared.labels.shape[-1]) for member in members]
        losses = torch.zeros(len(members))
        for number in range(how.steps):
            network = initial_weights(
                self._build_headless, seed.child("network", round, number)
            )
            slopes = torch.zeros_like(examples.inputs)
            for place, member in enumerate(members):
                draws = seed.child("draws", member.name, round, number).generator()
                drawn = [own[_some(len(own), how.batch, draws)] for own in owned[place]]
                slopes[place], losses[place] = self._slope(
                    network, examples.inputs[place], pool, drawn
                )
            still = Synthetic(
                slopes, torch.zeros_like(examples.labels), torch.zeros_like(examples.rates)
            )
            examples, _ = step(examples, still, moments, pace, scale)
        return Distilled(examples.map(Tensor.cpu), losses, moments)

    def bytes_kept(self, examples: int, members: int) -> int:
        """Memory for the weights of all members, as they train on their sets."""
        return 2 * members * self._pupil.size

    def _slope(
        self, network: Weights, inputs: Tensor, pool: Examples, drawn: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Slope and value of the distance, summed over the classes that were drawn."""
        held = [number for number, rows in enumerate(drawn) if len(rows)]
        weights = {name: self._pupil.on_device(one) for name, one in network.items()}

        def features(examples: Tensor) -> Tensor:
            told: Tensor = functional_call(self._headless, weights, (examples,))
            return told.flatten(1)

        with torch.no_grad():
            rows = torch.cat([drawn[number] for number in held])
            real = features(self._pupil.on_device(pool.inputs[rows]))
            means = torch.stack(
                [
                    own.mean(0)
                    for own in torch.split(real, [len(drawn[number]) for number in held])
                ]
            )
        leaf = inputs.detach().requires_grad_()
        with torch.enable_grad():
            # The classes come in turn, so a synthetic example's place tells its class.
            synthetic = features(leaf).view(self._how.samples, len(drawn), -1).mean(0)
            loss = (synthetic[held] - means).square().sum()
            (slope,) = torch.autograd.grad(loss, leaf)
        return slope, loss.detach().cpu()


def _by_class(pool: Examples, member: Member, classes: int) -> list[Tensor]:
    """The member's rows of each class."""
    labels = pool.labels[member.rows]
    return [member.rows[labels == number] for number in range(classes)]


def _some(whole: int, most: int, draws: torch.Generator) -> Tensor:
    return torch.randperm(whole, generator=draws)[:most]
