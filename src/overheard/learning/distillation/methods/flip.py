"""FLiP: synthetic examples for training in a single pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Decay, Rate
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive
from overheard.learning.batches import epoch_order
from overheard.learning.distillation.distillation import (
    Distillation,
    DistillationResult,
    Distiller,
    MissingClassMode,
)
from overheard.learning.distillation.moments import (
    AdamMoments,
    DistillationOptimizer,
    StepRates,
    take_step,
)
from overheard.learning.distillation.synthetic import SyntheticExamples
from overheard.learning.distillation.synthetic_trainer import SyntheticTrainer
from overheard.learning.distillation.unrolled_training import Parameters, checkpoint_bytes
from overheard.learning.training_job import ClientTask


@final
@dataclass(frozen=True, slots=True)
class Flip(Distillation):
    """Distillation of inputs, labels and rates such that one pass over them trains a model.

    A client trains on the set from the initial weights, and takes gradient steps on the loss of
    its own data after that training. This requires second derivatives through the whole
    training. The model is trained for one pass over the last round's set.

    The paper does not name the optimizer of the synthetic data. Its rate of 0.01, its batch of
    1,024, its factor of 0.5 every 40 rounds and its learned rates are the defaults of the
    public code of dataset distillation, which its predecessor (Sucholutsky and Schonlau 2021)
    extends by soft labels. So the optimizer of that code, "adam_softplus" with all three rates
    at 0.01, is the likely one. The default rates of Adam are this project's, for few steps.
    Each client keeps its Adam state between rounds. The paper distils for 30 epochs of batches
    of 1,024 per round; with 12,000 examples per client this is 360 steps. One step per round,
    over more rounds, costs a fraction and shares its training among all clients.

    The paper uses one example per step. With `at_once` equal to the number of classes, each
    example still has its own rate. For ten classes a pass then has a tenth of the steps and
    takes a fraction of the time, and a round improves the model slightly less.

    Args:
        samples: synthetic examples of each class.
        steps: distillation steps in a round.
        batch: a client's own examples per step; all, if it holds fewer.
        optimizer: optimizer of the synthetic data; "adam_softplus" is that of the public code:
            a first beta of 0.5, and learning rates through a softplus, so they stay positive.
        input_rate: its rate for inputs.
        label_rate: its rate for soft labels.
        rate_rate: its rate for the examples' learning rates.
        first_rate: initial learning rate of the examples.
        halve_every: number of rounds after which all three rates are halved each time; 0 =
            never.
        lacking: what happens to a class of which a client has no example; "average" is the
            paper's method, which assumes that no class is missing.
        at_once: synthetic examples per training step.

    """

    samples: Positive = 10
    steps: Positive = 1
    batch: Positive = 1024
    optimizer: DistillationOptimizer = "adam"
    input_rate: Decay = 0.1
    label_rate: Decay = 0.03
    rate_rate: Decay = 0.001
    first_rate: Rate = 0.02
    halve_every: NotNegative = 40
    lacking: MissingClassMode = "mask"
    at_once: Positive = 1

    name: ClassVar[str] = "flip"
    source: ClassVar[str] = (
        "FLiP: Privacy-Preserving Federated Learning via Dataset Distillation (arXiv "
        "2410.19548), Section IV and Algorithm 1"
    )

    def check_together(self) -> None:
        """Refuse a distillation that changes nothing."""
        if not any((self.input_rate, self.label_rate, self.rate_rate)):
            raise ValueError(
                "input_rate, label_rate and rate_rate are 0: set one of them above 0"
            )

    def build_distiller(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> "FlipDistiller":
        """Build a distiller that trains from these initial weights."""
        return FlipDistiller(self, build_model, start, device)


@final
class FlipDistiller(Distiller):
    """A distiller that differentiates through the training on its set.

    Args:
        settings: the settings.
        build_model: builds the network; its weights are not used.
        start: weights before each training on synthetic examples.
        device: where to compute.

    Raises:
        PlanError: if such a network does not support distillation.

    """

    def __init__(
        self,
        settings: Flip,
        build_model: BuildModel,
        start: Weights,
        device: torch.device | str,
    ) -> None:
        self._settings = settings
        self._trainer = SyntheticTrainer(build_model, start, settings.at_once, device)

    def train(self, examples: SyntheticExamples) -> list[Weights]:
        """Train for one pass over each client's set (equation (5)); return CPU weights."""
        return self._trainer.train(examples)

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
        """Distil one round; each client takes steps on its own batches."""
        settings, trainer = self._settings, self._trainer
        step_rates = StepRates(
            settings.input_rate, settings.label_rate, settings.rate_rate, settings.optimizer
        )
        examples = shared.map(lambda one: one.to(trainer.device))
        moments = moments.to_device(trainer.device)
        losses = torch.zeros(len(clients))
        for number in range(settings.steps):
            batches = [
                pool.take(_batch_rows(client, settings.batch, number, round, seed))
                for client in clients
            ]

            def final_gradients(
                weights: Parameters, batches: list[Examples] = batches
            ) -> list[Tensor]:
                nonlocal losses
                gradients, losses = self._gradients(weights, batches)
                return gradients

            gradients = trainer.training.gradients(trainer.start, examples, final_gradients)
            if number == 0:
                examples = examples.map(
                    lambda one: one.expand(len(clients), *one.shape).clone()
                )
            examples, moments = take_step(examples, gradients, moments, step_rates, rate_scale)
        return DistillationResult(examples.map(Tensor.cpu), losses, moments.to_device("cpu"))

    def needed_bytes(self, examples: int, clients: int) -> int:
        """Estimate the memory for the weights of all steps of a training."""
        steps = -(-examples // self._settings.at_once)
        return checkpoint_bytes(steps, clients * self._trainer.weight_bytes)

    def _gradients(
        self, weights: Parameters, batches: Sequence[Examples]
    ) -> tuple[list[Tensor], Tensor]:
        """Return gradient and value of the mean loss of each client's batch, clients first."""
        trainer = self._trainer
        gradients, losses = [], []
        per_client = weights[0].ndim > trainer.start[0].ndim
        for number, batch in enumerate(batches):
            leaves = [
                (one[number] if per_client else one).detach().requires_grad_()
                for one in weights
            ]
            with torch.enable_grad():
                logits = functional_call(
                    trainer.model,
                    dict(zip(trainer.names, leaves, strict=True)),
                    (trainer.to_device(batch.inputs),),
                )
                loss = cross_entropy(logits, batch.labels.to(trainer.device))
                gradients.append(torch.autograd.grad(loss, leaves))
            losses.append(loss.detach().cpu())
        stacked = [torch.stack(tensors) for tensors in zip(*gradients, strict=True)]
        return stacked, torch.stack(losses)


def _batch_rows(client: ClientTask, size: int, number: int, round: int, seed: Seed) -> Tensor:
    """Return the rows for a step of a round; the batches of an epoch follow each other."""
    batches = max(1, len(client.rows) // size)
    epoch, index = divmod(number, batches)
    order = epoch_order(seed, round, client.name, epoch, len(client.rows))
    return client.rows[order[index * size : (index + 1) * size]]
