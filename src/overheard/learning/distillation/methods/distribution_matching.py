"""Distribution matching: synthetic examples with the mean features of the real ones."""

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
from overheard.core.recipe import Rate
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive
from overheard.learning.distillation.distillation import (
    Distillation,
    DistillationResult,
    Distiller,
    MissingClassMode,
)
from overheard.learning.distillation.moments import AdamMoments, StepRates, take_step
from overheard.learning.distillation.synthetic import SyntheticExamples
from overheard.learning.distillation.synthetic_trainer import SyntheticTrainer
from overheard.learning.features import build_without_last_layer
from overheard.learning.initialization import fresh_model, initial_weights
from overheard.learning.training_job import ClientTask


@final
@dataclass(frozen=True, slots=True)
class DistributionMatching(Distillation):
    """Distillation that matches the mean features of synthetic and real examples by class.

    Each step draws a network with fresh random weights, the same for all clients. Its features
    are the inputs of its last layer. A client draws examples of each class and takes a gradient
    step on the squared distance between the two mean features of the class. No network is
    trained, and no second derivative is needed. Labels stay one-hot and learning rates do not
    change. So neither shows how many examples of a class a client has, only whether it has any.

    The mean of all clients' steps is a gradient step on their mean distance. So with one step
    per round a federation learns the same as on pooled data, if all classes count alike. The
    model is trained for several passes over the last round's set, from the initial weights.

    Differences from the source: it starts from real examples, which a client would thus send
    unchanged. This implementation starts from noise, for which the source's rate of 1 with
    momentum 0.5 is slow. The source trains models for 1,000 passes with augmentation; there is
    no augmentation here.

    Args:
        samples: synthetic examples of each class.
        steps: distillation steps in a round, each with a new network.
        batch: a client's own examples of each class per step; all, if it holds fewer.
        input_rate: rate of plain gradient descent on the inputs.
        first_rate: learning rate of each synthetic example in training on the set.
        passes: passes over the set in that training.
        at_once: synthetic examples per step of that training.
        halve_every: number of rounds after which the input rate is halved each time; 0 = never.
        lacking: what happens to a class of which a client has no example; with "average" the
            client counts with its unchanged synthetic examples.

    """

    samples: Positive = 10
    steps: Positive = 1
    batch: Positive = 64
    input_rate: Rate = 20.0
    first_rate: Rate = 0.01
    passes: Positive = 20
    at_once: Positive = 10
    halve_every: NotNegative = 0
    lacking: MissingClassMode = "mask"

    name: ClassVar[str] = "distribution_matching"
    source: ClassVar[str] = (
        "Zhao and Bilen 2023 (Dataset Condensation with Distribution Matching, WACV), equation "
        "(6) and Algorithm 1, without augmentation"
    )

    def build_distiller(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> "DistributionMatchingDistiller":
        """Build a distiller that trains from these initial weights."""
        return DistributionMatchingDistiller(self, build_model, start, device)


@final
class DistributionMatchingDistiller(Distiller):
    """A distiller that matches features of random networks.

    Args:
        settings: the settings.
        build_model: builds the networks.
        start: weights before training on synthetic examples.
        device: where to compute.

    Raises:
        PlanError: if such a network does not support distillation.

    """

    def __init__(
        self,
        settings: DistributionMatching,
        build_model: BuildModel,
        start: Weights,
        device: torch.device | str,
    ) -> None:
        self._settings = settings
        self._trainer = SyntheticTrainer(build_model, start, settings.at_once, device)
        self._build_headless = partial(build_without_last_layer, build_model)
        self._headless = fresh_model(self._build_headless, Seed(0)).to(device)

    def train(self, examples: SyntheticExamples) -> list[Weights]:
        """Train for all passes over each client's set, and return the weights, on the CPU."""
        return self._trainer.train(
            examples.map(lambda one: torch.cat([one] * self._settings.passes, 1))
        )

    def distil(
        self,
        shared: SyntheticExamples,
        pool: Examples,
        clients: Sequence[ClientTask],
        moments: AdamMoments,
        *,
        round: int,
        rate_scale: float,
        seed: Seed,
    ) -> DistillationResult:
        """Distil one round; each client matches the mean features of its own examples."""
        settings = self._settings
        step_rates = StepRates(settings.input_rate, 0.0, 0.0, "sgd")
        examples = shared.map(
            lambda one: one.to(self._trainer.device).expand(len(clients), *one.shape).clone()
        )
        rows_of = [_rows_by_class(pool, client, shared.labels.shape[-1]) for client in clients]
        losses = torch.zeros(len(clients))
        for number in range(settings.steps):
            network = initial_weights(
                self._build_headless, seed.child("network", round, number)
            )
            input_gradients = torch.zeros_like(examples.inputs)
            for index, client in enumerate(clients):
                generator = seed.child("draws", client.name, round, number).generator()
                drawn = [
                    class_rows[_draw_rows(len(class_rows), settings.batch, generator)]
                    for class_rows in rows_of[index]
                ]
                input_gradients[index], losses[index] = self._gradient(
                    network, examples.inputs[index], pool, drawn
                )
            gradients = SyntheticExamples(
                input_gradients,
                torch.zeros_like(examples.labels),
                torch.zeros_like(examples.rates),
            )
            examples, _ = take_step(examples, gradients, moments, step_rates, rate_scale)
        return DistillationResult(examples.map(Tensor.cpu), losses, moments)

    def needed_bytes(self, examples: int, clients: int) -> int:
        """Estimate the memory for the weights of all clients in training on their sets."""
        return 2 * clients * self._trainer.weight_bytes

    def _gradient(
        self, network: Weights, inputs: Tensor, pool: Examples, drawn: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return gradient and value of the distance, summed over the classes of the draw."""
        present = [number for number, rows in enumerate(drawn) if len(rows)]
        weights = {name: self._trainer.to_device(one) for name, one in network.items()}

        def features(examples: Tensor) -> Tensor:
            outputs: Tensor = functional_call(self._headless, weights, (examples,))
            return outputs.flatten(1)

        with torch.no_grad():
            rows = torch.cat([drawn[number] for number in present])
            real = features(self._trainer.to_device(pool.inputs[rows]))
            sizes = [len(drawn[number]) for number in present]
            means = torch.stack([part.mean(0) for part in torch.split(real, sizes)])
        leaf = inputs.detach().requires_grad_()
        with torch.enable_grad():
            # The classes come in turn, so the index of a synthetic example gives its class.
            synthetic = features(leaf).view(self._settings.samples, len(drawn), -1).mean(0)
            loss = (synthetic[present] - means).square().sum()
            (gradient,) = torch.autograd.grad(loss, leaf)
        return gradient, loss.detach().cpu()


def _rows_by_class(pool: Examples, client: ClientTask, classes: int) -> list[Tensor]:
    """Return the client's rows of each class."""
    labels = pool.labels[client.rows]
    return [client.rows[labels == number] for number in range(classes)]


def _draw_rows(available: int, count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(available, generator=generator)[:count]
