"""The job that trains shadow models in one round and returns their logits on records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.messages import Weights, apply_update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.learning.workers.job import Job
from overheard.simulation.job_tensors import unpack_broadcast, unpack_examples

LOGITS_TENSOR = "answers"
"""The name of the tensor of logits: (models, records, classes)."""

IS_MEMBER_TENSOR = "inside"
"""The name of the tensor that says which model trained on which record."""


@final
@dataclass(frozen=True, slots=True)
class ShadowTrainingJob(Job):
    """Train some shadow models in one round and compute their logits; weights are discarded.

    It reads the broadcast and the examples "auxiliary" and "records", and returns
    `LOGITS_TENSOR` and `IS_MEMBER_TENSOR`. The examples of a model depend only on its number,
    so they are the same in all rounds.

    Args:
        round: the round.
        models: the numbers of the models.
        size: number of training examples per model.
        include_candidates: whether models also train on candidate records.
        build_model: builds the architecture.
        recipe: the clients' training recipe.
        seed: the seed of all draws.
        device: the device to compute on.

    """

    round: int
    models: range
    size: int
    include_candidates: bool
    build_model: BuildModel
    recipe: Recipe
    seed: Seed
    device: str

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Train on one core, so that the bits do not depend on the machine.

        Raises:
            PlanError: if a training diverges.

        """
        start = unpack_broadcast(tensors)
        auxiliary, records = (
            unpack_examples(tensors, "auxiliary"),
            unpack_examples(tensors, "records"),
        )
        pool = (
            concatenate_examples((auxiliary, records)) if self.include_candidates else auxiliary
        )
        rows_of = [self._draw_rows(number, len(pool)) for number in self.models]
        is_member = torch.zeros(len(rows_of), len(records), dtype=torch.bool)
        for members, rows in zip(is_member, rows_of, strict=True):
            members[rows[rows >= len(auxiliary)] - len(auxiliary)] = True
        with one_thread():
            trained = train_cohort(
                self.build_model,
                start,
                Examples(pool.inputs.to(self.device), pool.labels.to(self.device)),
                [
                    ClientTask(f"shadow/{number}", rows)
                    for number, rows in zip(self.models, rows_of, strict=True)
                ],
                self.recipe,
                seed=self.seed.child("training"),
                round=self.round,
                chunk=len(self.models),
                workers=1,
                device=self.device,
            )
            models: Iterable[Weights] = (
                apply_update(start, update.delta) for update in trained
            )
            logits = torch.stack(
                list(
                    logits_of_models(
                        self.build_model, models, records.inputs, device=self.device
                    )
                )
            )
        if not bool(logits.isfinite().all()):
            raise PlanError(
                f"the training of shadow models diverged in round {self.round} (NaN or "
                "infinite logits): lower the learning rate of the recipe that the attacker "
                "assumes"
            )
        return {LOGITS_TENSOR: logits, IS_MEMBER_TENSOR: is_member}

    def _draw_rows(self, number: int, available: int) -> Tensor:
        """Return the rows of the pool that a model trains on."""
        generator = self.seed.child("shadow", number).generator()
        return torch.randperm(available, generator=generator)[: self.size]
