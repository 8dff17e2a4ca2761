"""Label shares from a recurrent network on per-class test accuracies over rounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import ceil, exp, log, log2, sqrt
from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int
from scipy.special import stdtrit
from torch import Tensor, nn

from overheard.core.attack import Attack, TrainingSource
from overheard.core.claims import INTERVAL_LEVEL
from overheard.core.compute_settings import ignore_progress
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.data.splits.iid import Iid
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.label_shares.estimators.learning_curve import (
    errors_by_halves,
    simulate_until_flat,
)
from overheard.simulation.auxiliary_logits import AuxiliaryLogits, accuracies
from overheard.simulation.chunk import MAX_COHORT_SIZE
from overheard.simulation.client_sizes import size_range
from overheard.simulation.simulation import Simulation, read_updates, run_simulation
from overheard.simulation.target_groups import TargetGroup, group_targets
from overheard.simulation.update_norms import UpdateNorms

LARGEST_SIZE = 20_000
"""Largest size of a virtual client that is trained to measure its update, in examples."""

BISECTIONS = 8
"""Halvings of the range on a log scale: they narrow a range of 100 to 1 to 2 %."""


def estimate_by_doubling(
    norm_of: Callable[[int], float], goal: float, guess: int, tolerance: float
) -> SizeEstimate:
    """Search by doubling and halving, as published (Ma et al. 2025, Algorithm 1).

    The size of a virtual client is doubled while the norm of its update is too small, and
    halved while it is too large. Only sizes of guess * 2^k can be found. If no size meets
    the condition, the published algorithm alternates between two sizes forever. This one stops
    when a size repeats or leaves the range from 1 to `LARGEST_SIZE`. It then returns the tried
    size with the nearest norm, marked as not converged.

    Args:
        norm_of: length of the update of a virtual client of this size.
        goal: length of the target's update.
        guess: the first size.
        tolerance: largest difference in length, relative to the goal: the paper's epsilon,
            whose value it does not state.

    """
    tried: dict[int, float] = {}
    size = guess
    while size not in tried and 1 <= size <= LARGEST_SIZE:
        tried[size] = norm_of(size)
        if abs(tried[size] - goal) < tolerance * goal:
            return SizeEstimate(float(size))
        size = 2 * size if tried[size] < goal else size // 2
    nearest = min(tried, key=lambda size: abs(tried[size] - goal))
    return SizeEstimate(float(nearest), converged=False)


def estimate_by_bisection(
    norms_of: Callable[[int], Float[Tensor, " replicates"]],
    goal: float,
    smallest: int,
    largest: int,
) -> SizeEstimate:
    """Search by bisecting a range of sizes on a log scale, with several clients of each size.

    Overheard's method. The interval contains the sizes at which a new client's log norm could
    equal the goal's. The mean log norm is interpolated linearly between the tried sizes and
    made monotone. A t interval describes how clients vary about it. Replicates may have the
    same label shares at every size, so the sizes together have the degrees of freedom of one.
    If the norm does not grow with size, the interval is the whole range. The search has not
    converged if the goal is outside what the range explains.

    Args:
        norms_of: lengths of the updates of some virtual clients of this size, at least 2.
        goal: length of the target's update.
        smallest: smallest size of the range.
        largest: largest size of the range.

    """
    logs = {size: norms_of(size).double().log() for size in {smallest, largest}}
    low, high = log(smallest), log(largest)
    for _ in range(BISECTIONS):
        middle = round(exp((low + high) / 2))
        if middle not in logs:
            logs[middle] = norms_of(middle).double().log()
        if float(logs[middle].mean()) < log(goal):
            low = log(middle)
        else:
            high = log(middle)
    sizes = sorted(logs)
    norms = torch.stack([logs[size] for size in sizes])  # (sizes, replicates)
    replicates = norms.shape[1]
    deviation = float(norms.var(1).mean().sqrt()) * sqrt(1 + 1 / replicates)
    margin = deviation * float(stdtrit(replicates - 1, (1 + INTERVAL_LEVEL) / 2))
    means = np.maximum.accumulate(norms.mean(1).numpy())
    ends = np.interp([log(goal) - margin, log(goal), log(goal) + margin], means, np.log(sizes))
    low, examples, high = (exp(end) for end in np.maximum.accumulate(ends))
    reached = means[0] - margin <= log(goal) <= means[-1] + margin
    return SizeEstimate(examples, low, high, converged=bool(reached))


OUTPUTS = AuxiliaryLogits()
UPDATE_NORMS = UpdateNorms()

LARGEST_SIZE_RATIO = 2**0.5
"""Largest ratio between the estimated size and that of a virtual client used for training."""

FEWEST_TRAINING_CLIENTS = 900
"""Fewest virtual clients used for training, as many as the paper's: the nearest in size if
fewer are within the ratio. By default, with 1,200 virtual clients, all that are `taught` are
used.

MNIST at 14 x 14, ten clients of hidden size, three rounds: mean L1 0.457 with 200 of 1,200
virtual clients, 0.395 with 400, 0.378 with all; with reported sizes 0.382, 0.371 and 0.390."""

REPLICATES = 10
"""Virtual clients that bisection trains at each size, with label shares from the prior."""


@final
@dataclass(frozen=True, slots=True)
class Whispers(Attack[LabelShares]):
    """A recurrent network, trained on virtual clients of the target's size, reads accuracies.

    Three stages. (1) The target's size is estimated from the length of its update
    (`estimate_by_doubling`). (2) Virtual clients of about that size train from every
    broadcast. Their accuracies per class on held-out examples form a matrix of rounds x
    classes. (3) An LSTM with attention over rounds (`AttentiveRecurrence`)
    learns to estimate shares from such matrices and is applied to the target's. A model is more
    accurate on a class after training on many of its examples.

    The length of an update grows with the number of steps, and so with size. It also grows with
    label imbalance: doubling compares with balanced virtual clients, so an imbalanced target
    seems larger than it is. Clipping and noise hide the length entirely.

    Differs from the paper: (1) It trains virtual clients for each target at its estimated size;
    here all targets share one simulation. Its virtual clients within a factor of
    `LARGEST_SIZE_RATIO` of the estimate, or the `FEWEST_TRAINING_CLIENTS` nearest, train the
    network. Estimates are rounded to half powers of 2, so that targets share networks. (2)
    Stage 1 uses the first observed round. (3) The test set is the held-out part of the
    auxiliary examples. (4) The paper does not specify an LSTM of 64, softmax outputs, the
    divergence as loss, Adam at 0.001 for 150 epochs, or the tolerance and first guess of stage
    1. (5) For `COHORT`, virtual cohorts are compared and used for training; sizes are means
    over their members.

    Cost, in addition to the simulation: about 4 s on one core for each network of 10 rounds and
    10 classes on 900 virtual clients. Doubling trains some 5 virtual clients per target,
    bisection some 100.

    Args:
        size: "doubling" is Algorithm 1. "bisection" is Overheard's correction of it, with an
            interval. "told" uses the size reported with the update, as a server has it that
            weights clients by size; if the size is hidden, it uses doubling.
        guess: first size that doubling tries, in examples.
        tolerance: difference in length at which doubling stops, relative to the target's.
        taught: part of the virtual clients among which those used for training are selected;
            the paper tests on the rest.
        most_rounds: at most this many rounds are read: the first ones.
        loss: loss of the network: the divergence of shares, or squared errors.
        hidden: width of the LSTM.
        epochs: epochs of training the network.
        batch: virtual clients per step.
        rate: learning rate of Adam.
        slow_after: epochs after which the rate drops to a tenth; None = never.

    """

    size: Literal["told", "doubling", "bisection"] = "told"
    guess: Annotated[int, Ge(1), Le(LARGEST_SIZE)] = 500
    tolerance: Annotated[float, Gt(0)] = 0.05
    taught: Annotated[float, Gt(0), Le(1)] = 0.75
    most_rounds: Positive = 10
    loss: Literal["divergence", "squared"] = "divergence"
    hidden: Positive = 64
    epochs: Positive = 150
    batch: Positive = 64
    rate: Annotated[float, Gt(0)] = 1e-3
    slow_after: int | None = None

    name: ClassVar[str] = "whispers"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPES})
    source: ClassVar[str] = (
        "Ma et al. 2025, Whispers of Data: Unveiling Label Distributions in Federated Learning "
        "Through Virtual Client Simulation (arXiv 2504.21436), Algorithms 1 and 2"
    )
    quick_settings: ClassVar = {"epochs": 10}
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the network's estimate for each target, and the size used for it."""
        claims = {}
        for group in group_targets(view, targets, self.most_rounds):
            group_seed = seed.child(self.name, *group.rounds)
            fit = partial(self._fit_network, group, knowledge, group_seed)
            simulation, curve = simulate_until_flat(
                view,
                knowledge,
                group.rounds,
                [OUTPUTS],
                partial(errors_by_halves, partial(_estimate_similar, fit, group)),
                cohort_size=group.cohort_size,
            )
            network_for = cache(partial(fit, simulation))
            norms_of = cache(partial(virtual_update_norms, view, knowledge, group))
            for target in group.targets:
                size = self._estimate_size(view, target, group, knowledge, norms_of)
                network = network_for(
                    nearest_half_octave(size.examples / group.clients_per_update)
                )
                features = read_updates(view, target, knowledge, group.rounds, [OUTPUTS])
                estimate = predict_shares(network, accuracies(features[OUTPUTS])[None])[0]
                claims[target] = LabelShares(
                    normalize_to_shares(estimate).float(), size=size, own_errors=curve
                )
        return claims

    def _estimate_size(
        self,
        view: View,
        target: Party,
        group: TargetGroup,
        knowledge: Knowledge,
        norms_of: "NormFunction",
    ) -> SizeEstimate:
        """Estimate the target's size (stage 1)."""
        updates = view.updates(target)
        reported = [updates[number].examples for number in group.rounds]
        known = [float(examples) for examples in reported if examples]
        if self.size == "told" and len(known) == len(reported):
            mean = sum(known) / len(known)
            return SizeEstimate(mean, mean, mean)
        first = group.rounds[:1]
        log_norms = read_updates(view, target, knowledge, first, [UPDATE_NORMS])[UPDATE_NORMS]
        goal = float(log_norms[0, 0].exp())
        if self.size == "bisection":
            smallest, largest = size_range(view, knowledge.prior)
            return _scale_size(
                estimate_by_bisection(partial(norms_of, "prior"), goal, smallest, largest),
                group.clients_per_update,
            )

        def norm_of(size: int) -> float:
            return float(norms_of("even", size)[0])

        return _scale_size(
            estimate_by_doubling(norm_of, goal, self.guess, self.tolerance),
            group.clients_per_update,
        )

    def _fit_network(
        self,
        group: TargetGroup,
        knowledge: Knowledge,
        seed: Seed,
        simulation: Simulation,
        octave: int,
    ) -> nn.Module:
        """Fit the network for targets of about this size (stages 2 and 3)."""
        sizes = simulation.sizes / min(group.clients_per_update, MAX_COHORT_SIZE)
        rows = select_training_clients(sizes, octave, self.taught)
        features = accuracies(simulation.readings[OUTPUTS])  # (virtual, rounds, classes)
        classes = knowledge.classes
        return fit_share_network(
            partial(AttentiveRecurrence, classes, classes, self.hidden),
            features[rows],
            simulation.shares[rows],
            kl_divergence if self.loss == "divergence" else squared_error,
            self._schedule(),
            seed.child("network", octave),
            knowledge.compute.own_device,
        )

    def _schedule(self) -> FitSchedule:
        return FitSchedule(self.epochs, self.batch, self.rate, self.slow_after)


def _estimate_similar(
    fit: Callable[[Simulation, int], nn.Module],
    group: TargetGroup,
    train: Simulation,
    test: Simulation,
) -> Float[Tensor, "virtual classes"]:
    """Estimate with the network for clients of the median size."""
    sizes = train.sizes / min(group.clients_per_update, MAX_COHORT_SIZE)
    network = fit(train, nearest_half_octave(float(sizes.median())))
    return predict_shares(network, accuracies(test.readings[OUTPUTS]))


LabelDistribution = Literal["even", "prior"]
"""Balanced labels, or label shares drawn from the prior."""

NormFunction = Callable[[LabelDistribution, int], Float[Tensor, " replicates"]]
"""Lengths of updates, by the label distribution and size of the virtual clients."""


def virtual_update_norms(
    view: View, knowledge: Knowledge, group: TargetGroup, kind: LabelDistribution, size: int
) -> Float[Tensor, " replicates"]:
    """Simulate new virtual clients in the group's first round; return their updates' lengths.

    Args:
        view: has the broadcast.
        knowledge: the attacker's knowledge.
        group: group whose first round is simulated, with the number of clients per update.
        kind: "even" is one client (or cohort) with balanced labels, as in the paper; "prior" is
            `REPLICATES` of them with label shares drawn from the prior.
        size: examples per client.

    """
    prior = replace(knowledge.prior, sizes=(size, size))
    even = kind == "even"
    if even:
        prior = replace(prior, splits=(Iid(),))
    # So few clients need no workers and no progress report.
    means = replace(
        knowledge.compute,
        virtual_clients=1 if even else REPLICATES,
        workers=1,
        cluster=None,
        on_progress=ignore_progress,
    )
    simulation = run_simulation(
        view,
        replace(knowledge, prior=prior, compute=means),
        group.rounds[:1],
        [UPDATE_NORMS],
        cohort_size=group.cohort_size,
    )
    return simulation.readings[UPDATE_NORMS][:, 0, 0].exp()


def nearest_half_octave(examples: float) -> int:
    """Return the nearest power of sqrt(2): 0 for 1, 2 for 2, 3 for 2.83, 4 for 4."""
    return round(2 * log2(examples))


def select_training_clients(
    sizes: Float[Tensor, " virtual"], octave: int, taught: float
) -> Int[Tensor, " _near"]:
    """Return the indices of the virtual clients near enough in size, in ascending order.

    Only the first part of them is used, `taught` of all.
    """
    distances = (sizes[: ceil(taught * len(sizes))].log2() - octave / 2).abs()
    near = (distances <= log2(LARGEST_SIZE_RATIO)).nonzero().flatten()
    if len(near) >= FEWEST_TRAINING_CLIENTS:
        return near
    return distances.argsort(stable=True)[:FEWEST_TRAINING_CLIENTS].sort().values


def squared_error(
    logits: Float[Tensor, "clients classes"], shares: Float[Tensor, "clients classes"]
) -> Float[Tensor, ""]:
    """Return the mean over clients and classes of the squared error of the shares."""
    return nn.functional.mse_loss(logits.softmax(1), shares)


def _scale_size(size: SizeEstimate, clients: int) -> SizeEstimate:
    """Convert the size of one client to that of all clients of a cohort."""
    ends = [None if end is None else clients * end for end in (size.low, size.high)]
    return SizeEstimate(clients * size.examples, ends[0], ends[1], size.converged)


@final
class TemporalAttention(nn.Module):
    """An attention-weighted mean of the states of a sequence.

    Ma et al. 2025, equations 7 to 9: e_t = v^T tanh(W h_t + b), a = softmax over t of e,
    c = sum over t of a_t h_t. If all scores are equal, it is the plain mean.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.bend = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, states: Float[Tensor, "clients rounds hidden"]) -> Tensor:
        """Return the weighted mean of the states of each client: (clients, hidden)."""
        weights = self.score(self.bend(states).tanh()).softmax(1)  # (clients, rounds, 1)
        means: Tensor = (weights * states).sum(1)
        return means


@final
class AttentiveRecurrence(nn.Module):
    """An LSTM of one layer over rounds, attention over its states, and a linear layer.

    Ma et al. 2025, Algorithm 2, which names no width: 64 is this project's guess.
    """

    def __init__(self, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.recurrence = nn.LSTM(features, hidden, batch_first=True)
        self.attention = TemporalAttention(hidden)
        self.last = nn.Linear(hidden, classes)

    def forward(self, features: Float[Tensor, "clients rounds features"]) -> Tensor:
        """Return logits: (clients, classes)."""
        states, _ = self.recurrence(features)
        logits: Tensor = self.last(self.attention(states))
        return logits
