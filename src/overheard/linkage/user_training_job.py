"""A worker job that trains some known users in one round and sketches their updates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import concatenate_examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.threads import single_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask
from overheard.learning.workers.job import Job
from overheard.linkage.count_sketch import make_count_sketch
from overheard.linkage.prior_client import PriorClient
from overheard.simulation.job_tensors import (
    unpack_background,
    unpack_broadcast,
    unpack_examples,
)
from overheard.simulation.simulated_defenses import SimulatedDefenses

SKETCH_PREFIX = "sketch/"
"""Prefix of the names of sketched tensors in the job's result."""

ANSWERED = "answered"
"""Name of the tensor with the indices of the clients that sent an update."""


@final
@dataclass(frozen=True, slots=True)
class UserTrainingJob(Job):
    """A job that trains, defends and sketches some virtual clients in one round.

    It reads the broadcast, the examples "users" and, for defenses that mix in public examples,
    the background. It returns `SKETCH_PREFIX` + name for every tensor of the model, one row for
    each client in `ANSWERED`. A client that a defense leaves without examples sends nothing.

    Args:
        round: number of the round.
        clients: the virtual clients.
        build_model: builds the model.
        recipe: how clients train.
        defenses: defenses applied to data and updates.
        seed: seed of all draws.
        device: where to compute.

    """

    round: int
    clients: tuple[PriorClient, ...]
    build_model: BuildModel
    recipe: Recipe
    defenses: tuple[Defense, ...]
    seed: Seed
    device: str

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Run the job on one core, so that results are bit-identical on every machine.

        Raises:
            NeedsError: if a training diverges.

        """
        broadcast = unpack_broadcast(tensors)
        with single_thread():
            return self.sketch(broadcast, self.train(tensors, broadcast))

    def train(
        self,
        tensors: Mapping[str, Tensor],
        broadcast: Weights,
        corrections: Sequence[Weights | None] = (),
    ) -> Iterator[tuple[int, ClientResult]]:
        """Train the clients that have examples; yield the index and the result of each.

        Args:
            tensors: those of the job.
            broadcast: the weights from which the clients start.
            corrections: what each client adds to its gradients; () = nothing.

        """
        users, background = unpack_examples(tensors, "users"), unpack_background(tensors)
        client_data = [
            self._simulated_defenses.defended_examples(
                client.select_examples(users), client.name, background
            )
            for client in self.clients
        ]
        answered = [index for index, data in enumerate(client_data) if len(data)]
        pool = concatenate_examples(client_data).to(self.device)
        rows = torch.split(torch.arange(len(pool)), [len(data) for data in client_data])
        trained = train_cohort(
            self.build_model,
            broadcast,
            pool,
            [
                ClientTask(
                    self.clients[index].name,
                    rows[index],
                    correction=corrections[index] if corrections else None,
                )
                for index in answered
            ],
            self.recipe,
            seed=self.seed.child("training"),
            round=self.round,
            chunk=len(self.clients),
            workers=1,
            device=self.device,
        )
        return zip(answered, trained, strict=True)

    def sketch(
        self, broadcast: Weights, trained: Iterable[tuple[int, ClientResult]]
    ) -> dict[str, Tensor]:
        """Return the sketches of trained clients' updates, after the defenses.

        They are sketched one by one, so that only one update at a time needs to be in memory.
        """
        sketches = {
            name: make_count_sketch(name, tuple(w.shape)) for name, w in broadcast.items()
        }
        answered, sketched = list[int](), list[dict[str, Tensor]]()
        for index, one in trained:
            update = self._simulated_defenses.defended_update(one)
            answered.append(index)
            sketched.append(
                {name: sketch.apply(update.delta[name]) for name, sketch in sketches.items()}
            )
        result = {
            SKETCH_PREFIX + name: torch.stack([row[name] for row in sketched])
            if sketched
            else torch.empty(0, sketch.width)
            for name, sketch in sketches.items()
        }
        return {ANSWERED: torch.tensor(answered, dtype=torch.long), **result}

    @property
    def _simulated_defenses(self) -> SimulatedDefenses:
        return SimulatedDefenses(self.defenses, self.round, self.seed)
