"""Membership of single clients from sums, by linear models and least squares: PROLIN."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from annotated_types import Ge
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, SUMS
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientTask
from overheard.participation.observed_sums import ObservedSums, find_sums
from overheard.questions.membership.claim import Membership
from overheard.simulation.client_sizes import size_range
from overheard.simulation.defended_training import DefendedTraining
from overheard.simulation.settled_device import settled_device
from overheard.simulation.simulated_defenses import SimulatedDefenses

EPOCHS, BATCH, RATE = 50, 16, 0.01
"""How the linear model is trained, as in the authors' code."""

TRAINED_PART = 0.8
"""Share of the simulated updates that the linear model is trained on; the others test it."""

LEAST_SPREAD = 1e-7
"""Added to the deviation of a parameter, as in the authors' code."""

LEAST_DEVIATION = 1e-6
"""Least deviation of activations; a few simulated updates may have the same one."""

MOST_BYTES = 2**26
"""Size of the simulated updates that are in memory at once; what is computed from them takes
about ten times as much."""

LARGEST = 1e30
"""Scores are clamped to this magnitude, within the range of float32."""


@final
@dataclass(frozen=True, slots=True)
class Prolin(Attack[Membership]):
    """Solves sums of linear activations for single clients, record by record.

    In each round, simulated clients train on auxiliary examples with and without the record,
    and a linear model (logistic regression) learns to tell their updates apart. Its activation
    of a sum of updates is the sum of their activations. So the activations of all rounds are
    linear equations about clients: ridge regression, with rounds weighted by how well the
    linear model separates (1 - the overlap of the activations with and without the record),
    gives a mean activation of each client.

    A client then has the record if its activations are more likely under the normal
    distributions of simulated clients with the record than without, over its rounds. With
    `steps`, activations of each round are redrawn as the most likely ones that add up to the
    sum, given who has the record, and the decision is made anew, in turns.

    The authors' code adds up densities over rounds (`likelihood = "density"`), so that few
    rounds in which a client is typical outvote many in which it is not. "log" adds up their
    logarithms, as independent rounds do. What differs from the authors' code: the turns are an
    earlier version that they left there (their figures are of gradient descent on the sum of
    three losses); and simulated clients without the record are shared by all records.

    Args:
        samples: simulated clients of a round with each record, and as many without any.
        penalty: weight of the ridge; 0 = weighted least squares.
        likelihood: what is added up over rounds: "density" as in the authors' code, or "log".
        steps: turns of activations and decisions; 0 = ridge regression alone.
        most_rounds: at most this many rounds are read, evenly spaced.

    """

    samples: Annotated[int, Ge(10)] = 100
    penalty: Annotated[float, Ge(0)] = 5.0
    likelihood: Literal["density", "log"] = "density"
    steps: Annotated[int, Ge(0)] = 10
    most_rounds: Positive = 100

    name: ClassVar[str] = "prolin"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({SUMS, BROADCASTS, AUXILIARY, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Kerkouche, Acs and Fritz 2023 (Client-specific Property Inference against Secure "
        "Aggregation in Federated Learning, WPES, arXiv 2303.03908), and the authors' code"
    )
    quick_settings: ClassVar = {"samples": 10, "most_rounds": 1}
    accurate_settings: ClassVar = {"samples": 40, "most_rounds": 1}

    def training_source(self) -> TrainingSource:
        """Return whose updates it learns from."""
        return "shadow models"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the difference of likelihoods of each record.

        Raises:
            NeedsError: if cohorts do not vary, there are too few auxiliary examples, or a
                simulated client diverged.

        """
        if COHORT in targets:
            raise NeedsError(f'{self.name} needs single clients as targets: about = "clients"')
        sums = find_sums(view, self.most_rounds)
        if sums is None or not set(targets) <= set(sums.clients):
            raise NeedsError(f"{self.name} needs {SUMS.description}")
        sums.check_separable(self.name)
        readings = read_sums(view, knowledge, sums, self.samples, seed)
        weights = sums.weights * (sums.weights > 0).sum(axis=1, keepdims=True)
        scores = np.stack([self.decide(weights, one) for one in readings])  # (records, clients)
        if not np.isfinite(scores).all():
            raise NeedsError(f"{self.name} needs sums of trained models, without huge numbers")
        found = torch.from_numpy(scores.clip(-LARGEST, LARGEST)).float()
        return {
            target: Membership(found[:, sums.clients.index(target)].contiguous())
            for target in targets
        }

    def decide(
        self, weights: Float[np.ndarray, "sums clients"], reading: "Reading"
    ) -> Float[np.ndarray, " clients"]:
        """Return by how much each client is more likely to have a record than not.

        Args:
            weights: of the clients in each sum, times the number of its clients.
            reading: what the linear models say of the record.

        """
        sizes = (weights > 0).sum(axis=1)
        sums = reading.activations * sizes
        separation = reading.separation()
        by_round = weights * separation[:, None]
        inverse = np.linalg.pinv(
            weights.T @ by_round + self.penalty * np.eye(weights.shape[1]), hermitian=True
        )
        means = inverse @ (by_round.T @ sums)
        activations = np.broadcast_to(means, weights.shape)
        scores = self._compare(activations, weights, reading)
        for _ in range(self.steps):
            has = scores > 0
            expected = np.where(has, reading.means[:, 1:], reading.means[:, :1])
            variance = np.where(has, reading.variances[:, 1:], reading.variances[:, :1])
            spread = weights**2 * variance
            rest = sums - (weights * expected).sum(axis=1)
            share = weights * variance / spread.sum(axis=1, keepdims=True)
            scores = self._compare(expected + share * rest[:, None], weights, reading)
            if (has == (scores > 0)).all():
                break
        return scores

    def _compare(
        self,
        activations: Float[np.ndarray, "sums clients"],
        weights: Float[np.ndarray, "sums clients"],
        reading: "Reading",
    ) -> Float[np.ndarray, " clients"]:
        """Return the likelihood with the record less that without, over a client's rounds."""
        logs = [
            -np.log(2 * np.pi * variance) / 2 - (activations - mean) ** 2 / (2 * variance)
            for mean, variance in (
                (reading.means[:, place, None], reading.variances[:, place, None])
                for place in (0, 1)
            )
        ]
        without, having = logs if self.likelihood == "log" else np.exp(logs)
        scores: Float[np.ndarray, " clients"]
        scores = ((having - without) * (weights > 0)).sum(axis=0)
        return scores


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the linear models of all sums say of one record.

    Args:
        activations: of each sum: the weighted mean of its clients' activations.
        means: of simulated clients of the round, without the record and with it.
        variances: likewise.

    """

    activations: Float[np.ndarray, " sums"]
    means: Float[np.ndarray, "sums 2"]
    variances: Float[np.ndarray, "sums 2"]

    def first(self, sums: int) -> "Reading":
        """Return what the first sums say."""
        return Reading(self.activations[:sums], self.means[:sums], self.variances[:sums])

    def separation(self) -> Float[np.ndarray, " sums"]:
        """Return 1 - the overlap of the activations without the record and with it."""
        pairs = zip(self.means, np.sqrt(self.variances), strict=True)
        return np.array(
            [1 - NormalDist(a, s).overlap(NormalDist(b, t)) for (a, b), (s, t) in pairs]
        )


def read_sums(
    view: View, knowledge: Knowledge, sums: ObservedSums, samples: int, seed: Seed
) -> list[Reading]:
    """Return the readings of all candidate records.

    Args:
        view: provides the broadcasts.
        knowledge: with candidates, auxiliary examples, a model and a recipe.
        sums: the sums.
        samples: simulated clients with each record, and without any.
        seed: the seed of all draws.

    """
    assert knowledge.auxiliary is not None
    known, records = len(knowledge.auxiliary), candidate_records(knowledge)
    pool = concatenate_examples((knowledge.auxiliary, records))
    size = max(1, min(_client_size(view, knowledge, sums), known // 2))
    shape = len(records), len(sums.rounds)
    activations, means, variances = (
        np.empty(shape),
        np.empty((*shape, 2)),
        np.empty((*shape, 2)),
    )
    broadcasts = view.broadcasts()
    for number in dict.fromkeys(sums.rounds):
        places = [place for place, one in enumerate(sums.rounds) if one == number]
        observed = torch.stack([flatten_weights(sums.deltas[place]) for place in places])
        drawn = seed.child("prolin", number)
        simulated = _Simulated(knowledge, pool, broadcasts[number], number, size, drawn)
        without = simulated.updates(samples, [None])[0]
        at_once = max(1, MOST_BYTES // (samples * without[0].nbytes))
        for part in torch.split(torch.arange(len(records)), at_once):
            having = simulated.updates(samples, [known + one for one in part.tolist()])
            with single_thread():
                models = _LinearModels.fit(without, having, drawn.child("models"))
                found = models.activations(observed).numpy()
            for row, record in enumerate(part.tolist()):
                activations[record, places] = found[row]
                means[record, places] = models.means[row]
                variances[record, places] = models.variances[row]
    return [Reading(*one) for one in zip(activations, means, variances, strict=True)]


def _client_size(view: View, knowledge: Knowledge, sums: ObservedSums) -> int:
    """Return the median number of examples of clients, or the middle of what is plausible."""
    if sums.sizes is not None:
        return int(np.median(sums.sizes))
    smallest, largest = size_range(view, knowledge.prior)
    return round(sqrt(smallest * largest))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Simulated:
    """Simulated clients of one round."""

    knowledge: Knowledge
    pool: Examples
    start: Weights
    round: int
    size: int
    seed: Seed

    def updates(
        self, count: int, records: Sequence[int | None]
    ) -> Float[Tensor, "records clients params"]:
        """Return the updates of clients with random auxiliary examples, and with each record.

        Args:
            count: number of clients with each record.
            records: rows of the pool; None = clients without any of them.

        """
        known = self.knowledge
        assert known.auxiliary is not None
        assert known.build_model is not None
        assert known.recipe is not None
        tasks = []
        for record in records:
            name = "without" if record is None else f"with/{record}"
            generator = self.seed.child("clients", name).generator()
            for number in range(count):
                rows = torch.randperm(len(known.auxiliary), generator=generator)[: self.size]
                if record is not None:
                    rows = torch.cat((rows[1:], torch.tensor([record])))
                tasks.append(ClientTask(f"{name}/{number}", rows))
        device = settled_device(
            known, known.auxiliary.inputs, len(tasks), self.size, are_jobs=False
        )
        training = DefendedTraining(
            known.build_model,
            known.recipe,
            SimulatedDefenses(known.defenses or (), self.round, self.seed.child("defenses")),
            self.seed.child("training"),
            device,
        )
        sent = training.updates(self.start, self.pool, tasks, known.background)
        flat = torch.stack([flatten_weights(one.delta).cpu() for one in sent])
        return flat.view(len(records), count, -1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _LinearModels:
    """Logistic regression on standardised updates, for each of several records.

    Args:
        centre: mean of each parameter's change.
        spread: its deviation.
        weight: of the standardised changes.
        bias: added to them.
        means: of the activations of held-out clients, without the record and with it.
        variances: likewise.

    """

    centre: Float[Tensor, "records params"]
    spread: Float[Tensor, "records params"]
    weight: Float[Tensor, "records params"]
    bias: Float[Tensor, " records"]
    means: Float[np.ndarray, "records 2"]
    variances: Float[np.ndarray, "records 2"]

    def activations(
        self, updates: Float[Tensor, "sums params"]
    ) -> Float[Tensor, "records sums"]:
        """Return the activation of each update."""
        slopes = self.weight / self.spread
        found: Tensor = slopes @ updates.double().T
        return found + (self.bias - (slopes * self.centre).sum(1))[:, None]

    @classmethod
    def fit(
        cls,
        without: Float[Tensor, "clients params"],
        having: Float[Tensor, "records clients params"],
        seed: Seed,
    ) -> "_LinearModels":
        """Train by SGD, and keep the epoch with the highest accuracy on held-out clients."""
        count, params = without.shape
        both = torch.cat((without.expand_as(having), having), 1).double()
        labels = torch.arange(2 * count) >= count
        generator = seed.generator()
        order = torch.randperm(2 * count, generator=generator)
        trained, tested = order.tensor_split([int(TRAINED_PART * 2 * count)])
        centre = both[:, trained].mean(1)
        spread = both[:, trained].std(1, unbiased=False) + LEAST_SPREAD
        inputs = (both - centre[:, None]) / spread[:, None]
        # As torch draws those of a linear layer.
        drawn = (2 * torch.rand(params + 1, generator=generator).double() - 1) / params**0.5
        first, first_bias = drawn[:-1], drawn[-1]
        # Each step of SGD adds inputs to the weights, so products of inputs are enough.
        products, start = inputs @ inputs.transpose(1, 2), inputs @ first + first_bias
        added, bias = torch.zeros_like(start), torch.zeros(len(start)).double()
        best_added, best_bias = added.clone(), bias.clone()
        best = torch.full((len(start),), -1.0)
        for _ in range(EPOCHS):
            shuffled = trained[torch.randperm(len(trained), generator=generator)]
            for batch in torch.split(shuffled, BATCH):
                said = start[:, batch] + _times(products[:, batch], added) + bias[:, None]
                step = RATE * (labels[batch].double() - said.sigmoid()) / len(batch)
                added[:, batch] += step
                bias = bias + step.sum(1)
            said = start[:, tested] + _times(products[:, tested], added) + bias[:, None]
            accuracy = ((said > 0) == labels[tested]).float().mean(1)
            is_better = accuracy > best
            best = torch.where(is_better, accuracy, best)
            best_added = torch.where(is_better[:, None], added, best_added)
            best_bias = torch.where(is_better, bias, best_bias)
        held_out = (
            start[:, tested] + _times(products[:, tested], best_added) + best_bias[:, None]
        )
        weight = first + (best_added.unsqueeze(1) @ inputs).squeeze(1)
        means, variances = _moments(held_out.numpy(), labels[tested].numpy())
        return cls(centre, spread, weight, first_bias + best_bias, means, variances)


def _times(
    matrices: Float[Tensor, "records rows clients"], vectors: Float[Tensor, "records clients"]
) -> Float[Tensor, "records rows"]:
    """Return the product of each matrix and vector."""
    found: Tensor = (matrices @ vectors.unsqueeze(2)).squeeze(2)
    return found


def _moments(
    activations: Float[np.ndarray, "records clients"], has: Bool[np.ndarray, " clients"]
) -> tuple[Float[np.ndarray, "records 2"], Float[np.ndarray, "records 2"]]:
    """Return means and variances without the record and with it; of all if one is missing."""
    parts = [
        activations[:, has == one] if (has == one).any() else activations for one in (0, 1)
    ]
    means = np.stack([one.mean(axis=1) for one in parts], axis=1)
    variances = np.stack([one.var(axis=1) for one in parts], axis=1)
    return means, variances.clip(min=LEAST_DEVIATION**2)
