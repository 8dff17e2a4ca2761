"""How noisily updates tell of label shares in the federation of a plan, by simulation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int

from overheard.auditing.inputs import Resources, load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.simulate import simulate
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.participation.observed_sums import ObservedSums, find_sums
from overheard.planning.cohorts.predicted_error import (
    MeasuredClients,
    SumNoise,
    principal_directions,
)
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.label_shares.attacks.sum_shares import SumShares
from overheard.questions.label_shares.estimators.sum_response import (
    SumReadings,
    contrasts,
    fit_response,
)
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import read_deltas, run_simulation

MEASURED_ROUNDS = 10
"""Rounds in which virtual clients train; gains of rounds in between are interpolated."""

MOST_CLIENTS = 50
"""Clients of a round whose noise is measured."""

MOST_ALIKE = 1e4
"""Largest sum of the parameters of the Dirichlet distribution: clients that are alike."""


def measure_noise(plan: Plan, cohort: int, rounds: int, resources: Resources) -> SumNoise:
    """Simulate a plan's federation, and measure what its clients' updates say of shares.

    Two federations train without defenses, so single updates are read. In some rounds, virtual
    clients give the linear response of the last layer to shares, as `sum_shares` fits it
    (`sum_response.fit_response`). The residuals of the federations' own clients are the noise:
    their product in two rounds of one client is what lasts, and that of two clients is what all
    have in common. The mean residual of each client shows how far it deviates, and where.
    Virtual clients alone would show too little noise that lasts, as they share the auxiliary
    examples.

    Args:
        plan: with data and auxiliary examples, for `sum_shares` or another attack. Its first
            seed is used, and the next number.
        cohort: clients in each round.
        rounds: number of rounds.
        resources: where the data are, and the workers.

    Raises:
        NeedsError: if the federation has no labels, or attackers lack auxiliary examples, the
            model or the recipe.

    """
    training = plan.training.model_copy(
        update={"rounds": rounds, "participation": cohort / plan.data.clients}
    )
    first = plan.seeds[0]
    plan = plan.model_copy(update={"training": training, "seeds": (first, first + 1)})
    return _summarise([_measure(plan, seed, resources) for seed in plan.seeds])


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """The residuals of single updates of a federation.

    Args:
        true: (clients, classes), label shares.
        like: (others, classes), label shares of clients of partitions drawn anew, or these.
        rounds: the measured rounds.
        own: (updates), the client of each.
        place: (updates), the place of the round of each.
        slopes: (rounds, contrasts, contrasts), the response in units of virtual clients' noise.
        residuals: (updates, contrasts), in these units.

    """

    true: Float[np.ndarray, "clients classes"]
    like: Float[np.ndarray, "others classes"]
    rounds: tuple[int, ...]
    own: Int[np.ndarray, " updates"]
    place: Int[np.ndarray, " updates"]
    slopes: Float[np.ndarray, "rounds contrasts contrasts"]
    residuals: Float[np.ndarray, "updates contrasts"]


def _measure(plan: Plan, seed: int, resources: Resources) -> _Measured:
    transcript, truth = simulate(plan, seed=seed, resources=resources)
    counts = truth.facts.need(LabelCounts).counts
    shares = {
        party: (held / held.sum()).double().numpy() for (_, party), held in counts.items()
    }
    arm = next(one for one in plan.arms if not one.defenses)
    inputs, threat = load_inputs(plan, resources, MemoryTensorCache()), _threat(plan)
    knowledge = attacker_knowledge(arm, threat, inputs.for_attackers(seed))
    view = transcript.seen_by(SERVER)
    sums = find_sums(view, MEASURED_ROUNDS)
    if sums is None or sums.sizes is None:
        raise NeedsError("the noise of sums needs a federation whose clients send updates")
    sizes = (min(sums.sizes), max(sums.sizes))
    knowledge = replace(knowledge, prior=replace(knowledge.prior, sizes=sizes))
    measured, kept = tuple(dict.fromkeys(sums.rounds)), _few_of_each_round(sums)
    own_rounds = [sums.rounds[row] for row in kept]
    simulation = run_simulation(view, knowledge, measured, [LastLayerChange()], is_alone=True)
    read = read_deltas(
        view, knowledge, own_rounds, [sums.deltas[row] for row in kept], LastLayerChange()
    )
    place = np.array([measured.index(number) for number in own_rounds])
    response = fit_response(
        SumReadings(
            simulation.readings[LastLayerChange()].double().flatten(2).numpy(force=True),
            simulation.shares.numpy(force=True),
            simulation.halves.numpy(force=True),
            read.double().flatten(1).numpy(force=True),
            place,
            sums.weights[kept],
        )
    )
    true = np.stack([shares[party] for party in sums.clients])
    own = sums.weights[kept].argmax(axis=1)
    unit = np.sqrt(response.between_rounds.diagonal())
    slopes = response.slopes / unit[:, None, None]
    told = np.einsum("tk,tkd->td", true[own] @ contrasts(true.shape[1]), slopes)
    firsts = np.array([int(np.flatnonzero(place == one)[0]) for one in range(len(measured))])
    residuals = response.observed / unit[:, None] - told
    redrawn = inputs.redrawn_counts(seed, threat)
    like = torch.cat(redrawn[0]).double().numpy() if redrawn else true
    like /= like.sum(axis=1, keepdims=True)
    return _Measured(true, like, measured, own, place, slopes[firsts], residuals)


def _threat(plan: Plan) -> ThreatPlan:
    """Return the threat of `sum_shares`, or the first."""
    of_sums = (
        threat
        for threat in plan.threats
        if any(isinstance(one, SumShares) for one in threat.attacks)
    )
    return next(of_sums, plan.threats[0])


def _few_of_each_round(sums: ObservedSums) -> list[int]:
    """Return the first rows of each round."""
    kept, seen = list[int](), dict[int, int]()
    for row, number in enumerate(sums.rounds):
        seen[number] = seen.get(number, 0) + 1
        if seen[number] <= MOST_CLIENTS:
            kept.append(row)
    return kept


def _summarise(measured: Sequence[_Measured]) -> SumNoise:
    variance, of_two, common = (
        float(np.mean(one)) for one in zip(*map(_products, measured), strict=True)
    )
    common = max(0.0, common)
    of_client = max(variance - common, 1e-9)
    lasting = min(1.0, max(0.0, (of_two - common) / of_client))
    prior = _fit_dirichlet(np.concatenate([one.like for one in measured]))
    root = principal_directions(prior)
    inner = contrasts(len(prior)).T @ root
    turned = np.stack([np.einsum("ki,tkd->tid", inner, one.slopes) for one in measured])
    # Along the eigenvectors of all rounds together, directions are nearly independent.
    _, axes = np.linalg.eigh(np.einsum("ftid,ftjd->ij", turned, turned))
    gains = np.linalg.norm(np.einsum("ij,ftid->ftjd", axes, turned), axis=3).mean(axis=0)
    of_spread = float(np.sqrt(of_client / (gains**2).mean()))
    clients = [_deviations(one, inner @ axes, lasting) for one in measured]
    found = MeasuredClients(
        np.concatenate([one.shares for one in clients]),
        np.concatenate([one.deviations for one in clients]),
    )
    return SumNoise(
        prior,
        root @ axes,
        np.array(measured[0].rounds),
        gains,
        of_client,
        lasting,
        common,
        of_sum=0.0,
        assumed=(
            "Label shares of clients are Dirichlet with parameters that sum to "
            f"{prior.sum():.2g}, fitted to the clients of the plan.",
            f"The noise of one update is {of_spread:.2g} times the spread of clients, and "
            f"{lasting:.0%} of its variance lasts over the rounds: measured on "
            f"{len(found.shares):,} simulated clients in {len(measured[0].rounds):,} rounds.",
            "Clients train as in the plan and without defenses, from broadcasts of random "
            "cohorts, and hold the same examples in all rounds.",
        ),
        measured=found,
    )


def _deviations(
    measured: _Measured, directions: Float[np.ndarray, "contrasts directions"], lasting: float
) -> MeasuredClients:
    """Return the clients of a federation, and how they deviate along directions.

    Their residuals of all rounds give the error by least squares, as directions are nearly
    independent. What is new in each round is still in it, so it is scaled to what lasts. The
    mean of all clients is left out, as the noise of a sum has a common part.
    """
    own, found = np.unique(measured.own), []
    slopes = np.einsum("ki,tkd->tid", directions, measured.slopes)
    for client in own:
        is_own = measured.own == client
        seen = slopes[measured.place[is_own]]
        told = np.einsum("tid,td->i", seen, measured.residuals[is_own])
        left = lasting / max(lasting + (1 - lasting) / int(is_own.sum()), 1e-12)
        found.append(np.sqrt(left) * told / np.maximum((seen**2).sum(axis=(0, 2)), 1e-12))
    deviations = np.stack(found)
    return MeasuredClients(measured.true[own], deviations - deviations.mean(axis=0))


def _products(measured: _Measured) -> tuple[float, float, float]:
    """Return the mean product of residuals: of one, of a client's, of all."""
    residuals, own, place = measured.residuals, measured.own, measured.place
    products = residuals @ residuals.T / residuals.shape[1]
    is_same = own[:, None] == own
    lasts = is_same & (place[:, None] != place)
    return (
        float(products.diagonal().mean()),
        float(products[lasts].mean()) if lasts.any() else 0.0,
        float(products[~is_same].mean()) if (~is_same).any() else 0.0,
    )


def _fit_dirichlet(
    shares: Float[np.ndarray, "clients classes"],
) -> Float[np.ndarray, " classes"]:
    """Return the Dirichlet parameters with the mean and the total variance of these shares."""
    mean = shares.mean(axis=0).clip(1e-3)
    mean /= mean.sum()
    variance = max(float(((shares - mean) ** 2).sum(axis=1).mean()), 1e-12)
    total = (1 - float((mean**2).sum())) / variance - 1
    parameters: Float[np.ndarray, " classes"] = mean * min(max(total, 0.05), MOST_ALIKE)
    return parameters
