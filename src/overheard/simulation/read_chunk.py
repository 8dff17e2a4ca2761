"""The job that trains and probes one chunk of virtual clients in one round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.control_variates import state_with_variates
from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Broadcast, Update, Weights
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import mean_update
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask
from overheard.learning.workers.job import Job
from overheard.simulation.chunk import CHUNK, Chunk
from overheard.simulation.job_tensors import (
    unpack_background,
    unpack_broadcast,
    unpack_examples,
    unpack_quarters,
    unpack_round,
)
from overheard.simulation.probe import Probe, ProbeContext, probe_seed
from overheard.simulation.simulated_defenses import SimulatedDefenses


@final
@dataclass(frozen=True, slots=True)
class ReadChunk(Job):
    """Train the clients of one chunk in one round, apply defenses, form cohorts, and probe.

    It reads the tensors of the broadcast, the examples "pool" and "auxiliary", the rows of the
    pool's quarters and "held out", and the public examples if known defenses may use them.
    It returns the readings of each probe under its position.

    Args:
        round: the simulated round.
        chunk: the virtual clients.
        classes: the number of labels of the task.
        build_model: builds the architecture.
        recipes: possible recipes; each virtual client follows one of them.
        known_recipe: the recipe of real clients; None = unknown.
        defenses: applied to data and updates.
        seed: the seed of the simulation.
        device: where to compute.
        probes: the probes.
        algorithm: corrects the gradients by control variates; None = nothing does. The job then
            also reads the broadcasts of this round and of the one before, by `pack_history`.

    """

    round: int
    chunk: Chunk
    classes: int
    build_model: BuildModel
    recipes: tuple[Recipe, ...]
    known_recipe: Recipe | None
    defenses: tuple[Defense, ...]
    seed: Seed
    device: str
    probes: tuple[Probe, ...]
    algorithm: Algorithm | None = None

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Run on one core, so that results are the same bit for bit on all machines.

        Raises:
            NeedsError: if a training diverges.

        """
        with single_thread(), computing("float32"):
            scene = self._context(tensors)
            updates = self._train_updates(scene.broadcast, tensors)
            if self.chunk.cohorts is None:
                deltas = [update.delta for update in updates]
            else:
                deltas = [
                    self._cohort_mean(updates, positions).delta
                    for positions in self.chunk.cohorts
                ]
            return {
                str(position): probe.read(scene, deltas).contiguous()
                for position, probe in enumerate(self.probes)
            }

    def _context(self, tensors: Mapping[str, Tensor]) -> ProbeContext:
        auxiliary = unpack_examples(tensors, "auxiliary")
        return ProbeContext(
            self.round,
            unpack_broadcast(tensors),
            self.build_model,
            self.classes,
            auxiliary.take(tensors["held out"]),
            auxiliary,
            self.known_recipe,
            probe_seed(self.seed, self.round),
            self.device,
        )

    def _train_updates(self, broadcast: Weights, tensors: Mapping[str, Tensor]) -> list[Update]:
        """Return the update of each client, after its defenses."""
        pool = unpack_examples(tensors, "pool")
        quarters = unpack_quarters(tensors)
        clients = self.chunk.clients
        members = [
            ClientTask(client.name, client.draw_rows(pool.labels, quarters, self.seed))
            for client in clients
        ]
        pool, members = self._simulated_defenses.defended_tasks(
            pool, members, unpack_background(tensors)
        )
        pool = pool.to(self.device)
        updates: dict[str, Update] = {}
        for number, recipe in enumerate(self.recipes):
            same_recipe = [
                member
                for client, member in zip(clients, members, strict=True)
                if client.recipe == number
            ]
            if self.algorithm is not None:
                same_recipe = self._corrected(
                    self.algorithm, pool, same_recipe, recipe, tensors
                )
            updates |= {
                result.client.name: self._simulated_defenses.defended_update(result)
                for result in self._train(broadcast, pool, same_recipe, recipe, self.round)
            }
        return [updates[client.name] for client in clients]

    def _train(
        self,
        start: Weights,
        pool: Examples,
        tasks: Sequence[ClientTask],
        recipe: Recipe,
        number: int,
    ) -> Iterator[ClientResult]:
        """Train clients of one recipe from the broadcast of a round."""
        return train_cohort(
            self.build_model,
            start,
            pool,
            tasks,
            recipe,
            seed=self.seed.child("training"),
            round=number,
            chunk=CHUNK,
            workers=1,
            device=self.device,
        )

    def _corrected(
        self,
        algorithm: Algorithm,
        pool: Examples,
        tasks: Sequence[ClientTask],
        recipe: Recipe,
        tensors: Mapping[str, Tensor],
    ) -> list[ClientTask]:
        """Return the clients with what they add to their gradients in this round.

        The control variate of a virtual client is its mean gradient in the round before. There
        it trains without a correction, as that would need all earlier rounds.
        """
        before, now = (unpack_round(tensors, number) for number in (self.round - 1, self.round))
        zero = {name: torch.zeros_like(part) for name, part in before.weights.items()}
        state = state_with_variates(Broadcast(before.weights, control=zero), {})
        corrected = []
        for one in self._train(before.weights, pool, tasks, recipe, self.round - 1):
            party, scale = Party(one.client.name), one.client.steps_in(recipe) * recipe.rate
            variate = algorithm.control_change(state, party, one.delta, scale)
            own = {} if variate is None else {str(party): variate}
            correction = algorithm.correction(state_with_variates(now, own), party)
            corrected.append(replace(one.client, correction=correction))
        return corrected

    def _cohort_mean(self, updates: list[Update], positions: tuple[int, ...]) -> Aggregate:
        """Return the aggregate of a cohort, before or after the server's own defenses."""
        mean = mean_update([updates[position] for position in positions])
        parties = [Party(self.chunk.clients[position].name) for position in positions]
        aggregate = Aggregate(mean.delta, frozenset(parties), mean.examples)
        for defense in self.defenses:
            if self.chunk.after_server or defense.enforced_at != "server":
                context = self._simulated_defenses.defense_context(defense, "+".join(parties))
                aggregate = defense.on_aggregate(aggregate, context)
        return aggregate

    @property
    def _simulated_defenses(self) -> SimulatedDefenses:
        return SimulatedDefenses(self.defenses, self.round, self.seed)
