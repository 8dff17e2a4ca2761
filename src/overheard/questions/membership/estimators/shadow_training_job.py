"""The job that trains shadow models in one round and returns their logits on records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.errors import NeedsError
from overheard.core.examples import concatenate_examples
from overheard.core.messages import Weights, apply_update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientTask
from overheard.learning.workers.job import Job
from overheard.simulation.defended_training import DefendedTraining
from overheard.simulation.job_tensors import (
    unpack_background,
    unpack_broadcast,
    unpack_examples,
)
from overheard.simulation.simulated_defenses import SimulatedDefenses

LOGITS_TENSOR = "answers"
"""The name of the tensor of logits: (models, records, classes)."""

IS_MEMBER_TENSOR = "inside"
"""The name of the tensor that says which model trained on which record."""


@final
@dataclass(frozen=True, slots=True)
class ShadowTrainingJob(Job):
    """Train some shadow models in one round and compute their logits; weights are discarded.

    The weights are those that an observer would compute from the sent update, after the
    defenses that the attacker knows. The job reads the broadcast, the examples "auxiliary" and
    "records", and the public examples if known defenses may use them. It returns
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
        defenses: the known defenses, applied to the examples and updates of each model.

    """

    round: int
    models: range
    size: int
    include_candidates: bool
    build_model: BuildModel
    recipe: Recipe
    seed: Seed
    device: str
    defenses: tuple[Defense, ...] = ()

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Train on one core, so that the bits do not depend on the machine.

        Raises:
            NeedsError: if a training diverges.

        """
        start = unpack_broadcast(tensors)
        auxiliary, records = (
            unpack_examples(tensors, "auxiliary"),
            unpack_examples(tensors, "records"),
        )
        pool = (
            concatenate_examples((auxiliary, records)) if self.include_candidates else auxiliary
        )
        rows_of = [
            draw_shadow_rows(self.seed, number, len(pool), self.size) for number in self.models
        ]
        training = DefendedTraining(
            self.build_model,
            self.recipe,
            SimulatedDefenses(self.defenses, self.round, self.seed),
            self.seed.child("training"),
            self.device,
        )
        tasks = [
            ClientTask(f"shadow/{number}", rows)
            for number, rows in zip(self.models, rows_of, strict=True)
        ]
        with single_thread():
            updates = training.updates(start, pool, tasks, unpack_background(tensors))
            models: Iterable[Weights] = (
                apply_update(start, update.delta) for update in updates
            )
            logits = torch.stack(
                list(
                    logits_of_models(
                        self.build_model, models, records.inputs, device=self.device
                    )
                )
            )
        if not bool(logits.isfinite().all()):
            raise NeedsError(
                f"the training of shadow models diverged in round {self.round} (NaN or "
                "infinite logits): lower the learning rate of the recipe that the attacker "
                "assumes"
            )
        is_member = membership_of_rows(rows_of, len(auxiliary), len(records))
        return {LOGITS_TENSOR: logits, IS_MEMBER_TENSOR: is_member}


def draw_shadow_rows(
    seed: Seed, number: int, available: int, size: int
) -> Int[Tensor, " examples"]:
    """Draw the rows that a shadow model trains on; the auxiliary examples come first."""
    generator = seed.child("shadow", number).generator()
    return torch.randperm(available, generator=generator)[:size]


def membership_of_rows(
    rows_of: Sequence[Int[Tensor, " examples"]], auxiliary: int, records: int
) -> Bool[Tensor, "models records"]:
    """Return which models train on which records, whose rows follow the auxiliary ones."""
    is_member = torch.zeros(len(rows_of), records, dtype=torch.bool)
    for members, rows in zip(is_member, rows_of, strict=True):
        members[rows[rows >= auxiliary] - auxiliary] = True
    return is_member
