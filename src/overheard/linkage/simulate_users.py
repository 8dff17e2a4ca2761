"""Trains some known users in one round, sketches what they would send, and drops the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.cohort import Member
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.learning.workers.job import Job
from overheard.linkage.learner import PriorClient
from overheard.linkage.sketch import sketch_for
from overheard.simulation.imitated_defenses import ImitatedDefenses
from overheard.simulation.job_tensors import background_of, broadcast_of, examples_of

SKETCH = "sketch/"
"""Stands before the name of each tensor of which the job gives sketches."""

ANSWERED = "answered"
"""The name under which the job gives the places of the learners whose sketches they are."""


@final
@dataclass(frozen=True, slots=True)
class SimulateUsers(Job):
    """Train, defend, sketch: some learners, one round.

    Of the tensors it reads the broadcast, the examples "users" and, where known defenses may
    mix in public examples, these. It gives `SKETCH` + name of every tensor of the model, one
    row for each learner in `ANSWERED`: one whom a defense of the data leaves without an example
    has nothing to send.

    Args:
        round: which.
        learners: who.
        build_model: gives the architecture.
        recipe: how clients train.
        defenses: through which data and updates pass.
        seed: of all draws.
        device: where to compute.

    """

    round: int
    learners: tuple[PriorClient, ...]
    build_model: BuildModel
    recipe: Recipe
    defenses: tuple[Defense, ...]
    seed: Seed
    device: str

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Do it on one core, so that the bits are the same wherever it is done.

        Raises:
            PlanError: if a training runs away.

        """
        broadcast = broadcast_of(tensors)
        sketches = {name: sketch_for(name, tuple(w.shape)) for name, w in broadcast.items()}
        users, background = examples_of(tensors, "users"), background_of(tensors)
        imitated = ImitatedDefenses(self.defenses, self.round, self.seed)
        with one_thread():
            held = [
                imitated.held(learner.held(users), learner.name, background)
                for learner in self.learners
            ]
            answered = [place for place, data in enumerate(held) if len(data)]
            pool = Examples(
                torch.cat([data.inputs for data in held]).to(self.device),
                torch.cat([data.labels for data in held]).to(self.device),
            )
            rows = torch.split(torch.arange(len(pool)), [len(data) for data in held])
            trained = train_cohort(
                self.build_model,
                broadcast,
                pool,
                [Member(self.learners[place].name, rows[place]) for place in answered],
                self.recipe,
                seed=self.seed.child("training"),
                round=self.round,
                chunk=len(self.learners),
                workers=1,
                device=self.device,
            )
            # Sketched one by one, so that no two updates that are trained one by one meet.
            rows_of = [
                {name: sketch.of(update.delta[name]) for name, sketch in sketches.items()}
                for update in map(imitated.sent, trained)
            ]
        read = {
            SKETCH + name: torch.stack([row[name] for row in rows_of])
            if rows_of
            else torch.empty(0, sketch.width)
            for name, sketch in sketches.items()
        }
        return {ANSWERED: torch.tensor(answered, dtype=torch.long), **read}
