"""FLiP: synthetic examples that a single pass learns from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import LARGEST
from overheard.core.seeds import Seed
from overheard.learning.batches import epoch_order
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
from overheard.learning.distillation.unroll import Parameters, bytes_kept


@final
@dataclass(frozen=True, slots=True)
class Flip(Distillation):
    """Examples, labels and rates such that one pass over them teaches what the data ask for.

    A client trains on the set from the first weights, and changes it after the slope of the
    loss of its own data at the end of that training: so slopes of slopes are walked back
    through all of it. The model is one pass over the last round's set.

    The paper does not name the optimiser of the synthetic data. Plain descent at its rate of
    0.01 learns next to nothing, as the slopes after rates dwarf those after pixels, and its
    ancestor (Sucholutsky and Schonlau 2021) has Adam: so Adam is the likely reading, inferred,
    and its rates are ours. Adam's moments stay with each client from round to round. The paper
    distils for 30 epochs of batches of 1,024 a round, with 12,000 examples a client that is
    360 steps; one step a round, over more rounds, costs a fraction and shares its training
    among all clients.

    The paper learns from one example a step. With `at_once` as many as there are classes, each
    with its own rate still, a pass is a tenth of the steps on ten classes, and takes a fraction
    of the time; a round brings a little less.

    Args:
        samples: synthetic examples of each class.
        steps: of distillation in a round.
        batch: a client's own examples that a step looks at; all, where it holds fewer.
        optimizer: of the synthetic data.
        input_rate: its rate for inputs.
        label_rate: its rate for soft labels.
        rate_rate: its rate for the examples' learning rates.
        first_rate: the examples' learning rate at the start.
        halve_every: after how many rounds each all three rates are halved; 0 = never.
        lacking: what is done where a client lacks a class; "average" is the paper's assumption
            that nobody does.
        at_once: synthetic examples that a step of training learns from.

    """

    samples: int = 10
    steps: int = 1
    batch: int = 1024
    optimizer: Literal["adam", "sgd"] = "adam"
    input_rate: float = 0.1
    label_rate: float = 0.03
    rate_rate: float = 0.001
    first_rate: float = 0.02
    halve_every: int = 40
    lacking: Lacking = "mask"
    at_once: int = 1

    name: ClassVar[str] = "flip"
    source: ClassVar[str] = (
        "FLiP: Privacy-Preserving Federated Learning via Dataset Distillation (arXiv "
        "2410.19548), Section IV and Algorithm 1"
    )

    def __post_init__(self) -> None:
        """Refuse a distillation that cannot be."""
        if min(self.samples, self.steps, self.batch, self.at_once) < 1:
            raise ValueError(f"samples, steps, batch and at_once are 1 or more, got {self}")
        rates = (self.input_rate, self.label_rate, self.rate_rate)
        if not all(0 <= rate < LARGEST for rate in rates) or not any(rates):
            raise ValueError(f"rates of the distillation are 0 or more, not all 0, got {self}")
        if not 0 < self.first_rate < LARGEST:
            raise ValueError(f"first_rate is above 0, got {self.first_rate}")
        if self.halve_every < 0:
            raise ValueError(f"halve_every is 0 or more, got {self.halve_every}")

    def distiller(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> "UnrolledDistiller":
        """Training that is walked back through, from these first weights."""
        return UnrolledDistiller(self, build_model, start, device)


@final
class UnrolledDistiller(Distiller):
    """Trains on a set, and walks back through the training.

    Args:
        how: how many steps, and which.
        build_model: gives it; its own weights are not used.
        start: weights before each training on synthetic examples.
        device: where to compute.

    Raises:
        PlanError: if nothing can be distilled through such a network.

    """

    def __init__(
        self, how: Flip, build_model: BuildModel, start: Weights, device: torch.device | str
    ) -> None:
        self._how = how
        self._pupil = SyntheticPupil(build_model, start, how.at_once, device)

    def train(self, examples: Synthetic) -> list[Weights]:
        """The weights after one pass over each member's set (equation (5)), on the cpu."""
        return self._pupil.train(examples)

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
        """Each member steps after its own batches: see `Distiller.distil`."""
        how, pupil = self._how, self._pupil
        pace = Pace(how.input_rate, how.label_rate, how.rate_rate, how.optimizer)
        examples = shared.map(lambda one: one.to(pupil.device))
        moments = moments.on(pupil.device)
        losses = torch.zeros(len(members))
        for number in range(how.steps):
            batches = [
                pool.take(_batch(one, how.batch, number, round, seed)) for one in members
            ]

            def after(weights: Parameters, batches: list[Examples] = batches) -> list[Tensor]:
                nonlocal losses
                slopes, losses = self._slopes(weights, batches)
                return slopes

            slopes = pupil.unroll.slopes(pupil.start, examples, after)
            if number == 0:
                examples = examples.map(
                    lambda one: one.expand(len(members), *one.shape).clone()
                )
            examples, moments = step(examples, slopes, moments, pace, scale)
        return Distilled(examples.map(Tensor.cpu), losses, moments.on("cpu"))

    def bytes_kept(self, examples: int, members: int) -> int:
        """Memory for the weights on the way through a set."""
        return bytes_kept(-(-examples // self._how.at_once), members * self._pupil.size)

    def _slopes(
        self, weights: Parameters, batches: Sequence[Examples]
    ) -> tuple[list[Tensor], Tensor]:
        """Slope and value of the mean loss of each member's batch, members first."""
        pupil = self._pupil
        each, losses = [], []
        is_apart = weights[0].ndim > pupil.start[0].ndim
        for number, batch in enumerate(batches):
            own = [
                (one[number] if is_apart else one).detach().requires_grad_() for one in weights
            ]
            with torch.enable_grad():
                logits = functional_call(
                    pupil.model,
                    dict(zip(pupil.names, own, strict=True)),
                    (pupil.on_device(batch.inputs),),
                )
                loss = cross_entropy(logits, batch.labels.to(pupil.device))
                each.append(torch.autograd.grad(loss, own))
            losses.append(loss.detach().cpu())
        return [torch.stack(one) for one in zip(*each, strict=True)], torch.stack(losses)


def _batch(member: Member, size: int, number: int, round: int, seed: Seed) -> Tensor:
    """The rows that a step of a round looks at: batches of an epoch follow each other."""
    whole = max(1, len(member.rows) // size)
    epoch, place = divmod(number, whole)
    order = epoch_order(seed, round, member.name, epoch, len(member.rows))
    return member.rows[order[place * size : (place + 1) * size]]
