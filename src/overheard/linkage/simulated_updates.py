"""Simulated updates of known users in each round, cached across attacks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.algorithm.algorithm import Algorithm, ServerState
from overheard.core.algorithm.control_variates import add_change, state_with_variates
from overheard.core.compute_settings import ComputeSettings
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Weights
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientResult
from overheard.learning.workers.job import Job, TensorBundle
from overheard.linkage.count_sketch import MAX_UNSKETCHED, SKETCH_WIDTH
from overheard.linkage.prior_client import PriorClient, concatenate_users
from overheard.linkage.user_training_job import ANSWERED, SKETCH_PREFIX, UserTrainingJob
from overheard.simulation.cache_keys import broadcast_key, combined_key, network_text
from overheard.simulation.cached_jobs import (
    CachedJob,
    JobInputs,
    JobResult,
    run_cached_jobs,
    single_result_job,
)
from overheard.simulation.chunk import CHUNK
from overheard.simulation.job_tensors import (
    pack_background,
    pack_examples,
    pack_history,
    unpack_round,
)
from overheard.simulation.settled_device import with_settled_device

ROUND = "round"
"""Name of the tensor with the round of each update."""


PROGRESS_LABEL = "known users"
"""Name of this training in calls of `ComputeSettings.on_progress`."""


@final
@dataclass(frozen=True, slots=True)
class SimulatedUpdates:
    """Updates of virtual clients, one row an update, ordered by round.

    Args:
        vectors: the requested tensors, sketched and concatenated.
        clients: index of each update's virtual client.
        rounds: round of each update.

    """

    vectors: Float[Tensor, "updates dims"]
    clients: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]


def simulate_updates(
    broadcasts: Mapping[int, Weights],
    knowledge: Knowledge,
    clients: Sequence[PriorClient],
    names: Sequence[str],
) -> SimulatedUpdates:
    """Simulate the update of each virtual client in each round.

    One job trains `CHUNK` clients in one round. All its tensors are cached as soon as it is
    done, so no other choice of a layer repeats the training.

    Args:
        broadcasts: the global model, by round.
        knowledge: knowledge with a model and a recipe.
        clients: the virtual clients, who draw from
            `KnownUsers.of(knowledge).all_prior_examples`.
        names: names of the tensors to return.

    """
    pool = concatenate_users(KnownUsers.of(knowledge).all_prior_examples())
    knowledge = _with_settled_device(knowledge, pool, clients)
    means = knowledge.compute
    seed = means.seed.child("known users")
    common = _shared_key(knowledge, pool, seed)
    starts, jobs = [], []
    for number, weights in broadcasts.items():
        round_key = broadcast_key(common, number, weights)
        for first in range(0, len(clients), CHUNK):
            job_clients = tuple(clients[first : first + CHUNK])
            job = _job(knowledge, number, job_clients, seed)
            jobs.append(
                single_result_job(number, combined_key(round_key, repr(job_clients)), job)
            )
            starts.append(first)
    return _run(
        jobs,
        starts,
        names,
        JobInputs(lambda: _shared_inputs(knowledge, pool), broadcasts),
        means,
    )


def simulate_corrected_updates(
    history: Mapping[int, Broadcast],
    participation: float,
    knowledge: Knowledge,
    clients: Sequence[PriorClient],
    names: Sequence[str],
) -> SimulatedUpdates:
    """Simulate the update of each virtual client in all rounds, with its control variate.

    One job trains `CHUNK` clients in all rounds, as each round depends on those before.

    Args:
        history: the broadcasts of all rounds from the first on.
        participation: probability with which a client takes part in a round.
        knowledge: knowledge with a model, a recipe and the algorithm.
        clients: the virtual clients, who draw from
            `KnownUsers.of(knowledge).all_prior_examples`.
        names: names of the tensors to return.

    """
    pool = concatenate_users(KnownUsers.of(knowledge).all_prior_examples())
    knowledge = _with_settled_device(knowledge, pool, clients)
    assert knowledge.algorithm is not None
    means, packed = knowledge.compute, pack_history(history)
    seed = means.seed.child("known users")
    common = combined_key(
        _shared_key(knowledge, pool, seed),
        repr((knowledge.algorithm, participation)),
        *(part for item in packed.items() for part in item),
    )
    starts, jobs = range(0, len(clients), CHUNK), []
    for first in starts:
        job_clients = tuple(clients[first : first + CHUNK])
        one_round = _job(knowledge, 0, job_clients, seed)
        job = CorrectedTrainingJob(
            one_round, tuple(sorted(history)), knowledge.algorithm, participation
        )
        jobs.append(single_result_job(0, combined_key(common, repr(job_clients)), job))

    def shared() -> tuple[TensorBundle, ...]:
        return (*_shared_inputs(knowledge, pool), TensorBundle(packed))

    # Jobs read the broadcasts of all rounds, and none of one round alone.
    return _run(jobs, starts, names, JobInputs(shared, {0: {}}), means)


def _with_settled_device(
    knowledge: Knowledge, pool: Examples, clients: Sequence[PriorClient]
) -> Knowledge:
    examples = sum(one.end - one.begin for one in clients) / max(1, len(clients))
    return with_settled_device(knowledge, pool.inputs, len(clients), examples)


def _run(
    jobs: Sequence[CachedJob],
    starts: Sequence[int],
    names: Sequence[str],
    inputs: JobInputs,
    means: ComputeSettings,
) -> SimulatedUpdates:
    """Run jobs, or load their results, and return the updates ordered by round.

    Args:
        jobs: the jobs.
        starts: index of the first virtual client of each job.
        names: names of the tensors to return.
        inputs: what jobs read.
        means: the compute settings.

    """
    parts: dict[int, SimulatedUpdates] = {}

    def take(index: int, _: int, result: JobResult) -> None:
        numbers = torch.full_like(result[ANSWERED], jobs[index].round)
        parts[index] = SimulatedUpdates(
            torch.cat([result[SKETCH_PREFIX + name] for name in names], 1),
            starts[index] + result[ANSWERED],
            result.get(ROUND, numbers),
        )

    run_cached_jobs(PROGRESS_LABEL, jobs, inputs, means, take)
    in_order = [parts[index] for index in range(len(jobs))]
    rounds = torch.cat([part.rounds for part in in_order])
    order = rounds.argsort(stable=True)
    return SimulatedUpdates(
        torch.cat([part.vectors for part in in_order])[order],
        torch.cat([part.clients for part in in_order])[order],
        rounds[order],
    )


def _shared_key(knowledge: Knowledge, pool: Examples, seed: Seed) -> str:
    """Return the part of the cache key that all rounds share."""
    assert knowledge.build_model is not None
    model = network_text(fresh_model(knowledge.build_model, seed))
    settings = (knowledge.recipe, knowledge.defenses or (), seed, MAX_UNSKETCHED, SKETCH_WIDTH)
    background = knowledge.background if knowledge.defenses else None
    public = () if background is None else background.tensors()
    return combined_key(repr(settings), model, *pool.tensors(), *public)


def _job(
    knowledge: Knowledge, number: int, clients: tuple[PriorClient, ...], seed: Seed
) -> UserTrainingJob:
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    return UserTrainingJob(
        number,
        clients,
        knowledge.build_model,
        knowledge.recipe,
        knowledge.defenses or (),
        seed,
        knowledge.compute.job_device,
    )


def _shared_inputs(knowledge: Knowledge, pool: Examples) -> tuple[TensorBundle, ...]:
    """Bundle the tensors that the jobs of all rounds read."""
    return (
        TensorBundle(pack_examples("users", pool)),
        TensorBundle(pack_background(knowledge)),
    )


@final
@dataclass(frozen=True, slots=True)
class CorrectedTrainingJob(Job):
    """A job that trains, defends and sketches some virtual clients in all rounds.

    Each virtual client has a control variate, as a client of the run has. It changes in the
    rounds in which the virtual client takes part; its update is read in every round. The job
    reads the examples "users", the background, and the broadcasts of `pack_history`. It returns
    what `UserTrainingJob` returns, for all rounds one after the other, and `ROUND`.

    Args:
        users: the job of a single round; its own round is not used.
        rounds: all rounds from the first on.
        algorithm: corrects the gradients.
        participation: probability with which a virtual client takes part in a round.

    """

    users: UserTrainingJob
    rounds: tuple[int, ...]
    algorithm: Algorithm
    participation: float

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Run the job on one core, so that results are bit-identical on every machine.

        Raises:
            PlanError: if a training diverges.

        """
        variates, results = dict[str, Weights](), list[dict[str, Tensor]]()
        with single_thread():
            for number in self.rounds:
                job = replace(self.users, round=number)
                state = state_with_variates(unpack_round(tensors, number), variates)
                trained = self._train(job, tensors, state, variates)
                sketched = job.sketch(state.weights, trained)
                count = len(next(iter(sketched.values())))
                results.append({**sketched, ROUND: torch.full((count,), number)})
        return {name: torch.cat([one[name] for one in results]) for name in results[0]}

    def _train(
        self,
        job: UserTrainingJob,
        tensors: Mapping[str, Tensor],
        state: ServerState,
        variates: dict[str, Weights],
    ) -> Iterator[tuple[int, ClientResult]]:
        """Train one round; change the variates of those that take part, once they are read."""
        parties = [Party(client.name) for client in job.clients]
        corrections = [self.algorithm.correction(state, party) for party in parties]
        for index, trained in job.train(tensors, state.weights, corrections):
            yield index, trained
            party, steps = parties[index], trained.client.steps_in(job.recipe)
            draw = job.seed.child("participation", job.round, party).numpy().random()
            change = self.algorithm.control_change(
                state, party, trained.delta, steps * job.recipe.rate
            )
            if change is not None and draw < self.participation:
                variates[party] = add_change(variates.get(party), change)
