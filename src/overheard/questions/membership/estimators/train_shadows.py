"""Trains some shadow models in one round, asks them about records, and drops their weights."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples, joined
from overheard.core.messages import Weights, moved
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.cohort import Member
from overheard.learning.evaluate import logits_of_cohort
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.learning.workers.job import Job
from overheard.simulation.job_tensors import broadcast_of, examples_of

ANSWERS = "answers"
"""The name under which the job gives logits: (models, records, classes)."""

INSIDE = "inside"
"""The name under which it gives which of the records each model learned from."""


@final
@dataclass(frozen=True, slots=True)
class TrainShadows(Job):
    """Draw, train, ask: some shadow models, one round.

    Of the tensors it reads the broadcast and the examples "auxiliary" and "records"; it gives
    `ANSWERS` and `INSIDE`. What a model draws hangs on its number alone, so it learns from the
    same examples in all rounds.

    Args:
        round: which.
        numbers: which models.
        size: how many examples each learns from.
        asked: whether it draws from the records in question too.
        build_model: gives the architecture.
        recipe: how clients train.
        seed: of all draws.
        device: where to compute.

    """

    round: int
    numbers: range
    size: int
    asked: bool
    build_model: BuildModel
    recipe: Recipe
    seed: Seed
    device: str

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Do it on one core, so that the bits are the same wherever it is done.

        Raises:
            PlanError: if a training runs away.

        """
        start = broadcast_of(tensors)
        auxiliary, records = examples_of(tensors, "auxiliary"), examples_of(tensors, "records")
        pool = joined((auxiliary, records)) if self.asked else auxiliary
        drawn = [self._drawn(number, len(pool)) for number in self.numbers]
        inside = torch.zeros(len(drawn), len(records), dtype=torch.bool)
        for own, rows in zip(inside, drawn, strict=True):
            own[rows[rows >= len(auxiliary)] - len(auxiliary)] = True
        with one_thread():
            trained = train_cohort(
                self.build_model,
                start,
                Examples(pool.inputs.to(self.device), pool.labels.to(self.device)),
                [
                    Member(f"shadow/{number}", rows)
                    for number, rows in zip(self.numbers, drawn, strict=True)
                ],
                self.recipe,
                seed=self.seed.child("training"),
                round=self.round,
                chunk=len(self.numbers),
                workers=1,
                device=self.device,
            )
            models: Iterable[Weights] = (moved(start, one.delta) for one in trained)
            answers = torch.stack(
                list(
                    logits_of_cohort(
                        self.build_model, models, records.inputs, device=self.device
                    )
                )
            )
        if not bool(answers.isfinite().all()):
            raise PlanError(
                f"the training of shadow models ran away in round {self.round} (what they "
                "answer is NaN or infinite): lower the rate of the recipe that the attacker "
                "takes clients to follow"
            )
        return {ANSWERS: answers, INSIDE: inside}

    def _drawn(self, number: int, there: int) -> Tensor:
        """The rows, of so many, from which a model learns."""
        generator = self.seed.child("shadow", number).generator()
        return torch.randperm(there, generator=generator)[: self.size]
