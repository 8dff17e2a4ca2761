"""Trains one chunk of virtual clients in one round, reads them, and drops their weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update, Weights
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import mean_update
from overheard.learning.cohort import Member
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.learning.workers.job import Job
from overheard.simulation.chunk import CHUNK, Chunk
from overheard.simulation.imitated_defenses import ImitatedDefenses
from overheard.simulation.job_tensors import background_of, broadcast_of, examples_of
from overheard.simulation.probe import Probe, Scene, scene_seed


@final
@dataclass(frozen=True, slots=True)
class ReadChunk(Job):
    """Train, defend, form cohorts, probe: one chunk, one round.

    Of the tensors it reads the broadcast, the examples "pool" and "auxiliary", "half/0",
    "half/1", "held out" and, where known defenses may mix in public examples, these; it gives
    the readings of each probe under its place.

    Args:
        round: which.
        chunk: who.
        classes: how many labels the task has.
        build_model: gives the architecture.
        recipes: how clients may train; each virtual client names one of them.
        known: how clients train; None = unknown.
        defenses: through which data and updates pass.
        seed: of the bank.
        device: where to compute.
        probes: what is read.

    """

    round: int
    chunk: Chunk
    classes: int
    build_model: BuildModel
    recipes: tuple[Recipe, ...]
    known: Recipe | None
    defenses: tuple[Defense, ...]
    seed: Seed
    device: str
    probes: tuple[Probe, ...]

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Do it on one core, so that the bits are the same wherever it is done.

        Raises:
            PlanError: if a training runs away.

        """
        with one_thread():
            scene = self._scene(tensors)
            updates = self._updates(scene.broadcast, tensors)
            if self.chunk.cohorts is None:
                deltas = [update.delta for update in updates]
            else:
                deltas = [self._mean(updates, own).delta for own in self.chunk.cohorts]
            return {
                str(place): probe.read(scene, deltas).contiguous()
                for place, probe in enumerate(self.probes)
            }

    def _scene(self, tensors: Mapping[str, Tensor]) -> Scene:
        auxiliary = examples_of(tensors, "auxiliary")
        return Scene(
            self.round,
            broadcast_of(tensors),
            self.build_model,
            self.classes,
            auxiliary.take(tensors["held out"]),
            auxiliary,
            self.known,
            scene_seed(self.seed, self.round),
            self.device,
        )

    def _updates(self, broadcast: Weights, tensors: Mapping[str, Tensor]) -> list[Update]:
        """What each client of the chunk would send, defenses and all."""
        pool = examples_of(tensors, "pool")
        halves = (tensors["half/0"], tensors["half/1"])
        clients = self.chunk.clients
        members = [
            Member(client.name, client.rows(pool.labels, halves, self.seed))
            for client in clients
        ]
        if any(type(defense).on_data is not Defense.on_data for defense in self.defenses):
            pool, members = self._defended(pool, members, background_of(tensors))
        pool = Examples(pool.inputs.to(self.device), pool.labels.to(self.device))
        sent: dict[str, Update] = {}
        for place, recipe in enumerate(self.recipes):
            own = [
                member
                for client, member in zip(clients, members, strict=True)
                if client.recipe == place
            ]
            trained = train_cohort(
                self.build_model,
                broadcast,
                pool,
                own,
                recipe,
                seed=self.seed.child("training"),
                round=self.round,
                chunk=CHUNK,
                workers=1,
                device=self.device,
            )
            sent |= {one.member.name: self._imitated.sent(one) for one in trained}
        return [sent[client.name] for client in clients]

    def _defended(
        self, pool: Examples, members: list[Member], background: Examples | None
    ) -> tuple[Examples, list[Member]]:
        """Let the defenses of the data act, as each client of a federation does."""
        held, changed, start = [], [], 0
        for member in members:
            data = self._imitated.held(pool.take(member.rows), member.name, background)
            changed.append(Member(member.name, torch.arange(start, start + len(data))))
            start += len(data)
            held.append(data)
        inputs = torch.cat([data.inputs for data in held])
        return Examples(inputs, torch.cat([data.labels for data in held])), changed

    def _mean(self, updates: list[Update], places: tuple[int, ...]) -> Aggregate:
        """What is read of a cohort: by the server before its own defenses act, else after."""
        mean = mean_update([updates[place] for place in places])
        parties = [Party(self.chunk.clients[place].name) for place in places]
        aggregate = Aggregate(mean.delta, frozenset(parties), mean.examples)
        for defense in self.defenses:
            if self.chunk.after_server or defense.enforced_at != "server":
                moment = self._imitated.moment(defense, "+".join(parties))
                aggregate = defense.on_aggregate(aggregate, moment)
        return aggregate

    @property
    def _imitated(self) -> ImitatedDefenses:
        return ImitatedDefenses(self.defenses, self.round, self.seed)
