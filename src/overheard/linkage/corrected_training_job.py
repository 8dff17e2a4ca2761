"""A worker job that trains some known users round after round, with their own variates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from overheard.core.algorithm.algorithm import Algorithm, ServerState
from overheard.core.algorithm.control_variates import add_change, state_with_variates
from overheard.core.messages import Weights
from overheard.core.parties import Party
from overheard.learning.threads import one_thread
from overheard.learning.training_job import ClientResult
from overheard.learning.workers.job import Job
from overheard.linkage.user_training_job import UserTrainingJob
from overheard.simulation.job_tensors import unpack_round

ROUND = "round"
"""Name of the tensor with the round of each update."""


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
        with one_thread():
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
