"""The training of simulated federations, all of them at once, round by round."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import final

import torch

from overheard.core.algorithm.algorithm import (
    LOCAL_STEPS,
    Algorithm,
    ReceivedUpdate,
    ServerState,
)
from overheard.core.algorithm.control_variates import without_correction
from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Aggregate, Update, Weights, weighted_sum
from overheard.core.parties import Party, client
from overheard.core.recipe import Recipe
from overheard.core.view import mean_update
from overheard.learning.initialization import initial_weights
from overheard.learning.sent_tensors import without_negative_variances
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientResult, ClientTask, TrainingGroup
from overheard.simulation.federations.design import FederationDesign, SimulatedFederation
from overheard.simulation.settled_device import settled_device
from overheard.simulation.simulated_defenses import SimulatedDefenses

DESCRIPTION = "simulating federations"


@final
@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRound:
    """One round of all simulated federations.

    Args:
        place: its number, counted from 0.
        broadcasts: the global model of each federation at the start of the round.
        target_deltas: the mean update of the target's clients in each federation.

    """

    place: int
    broadcasts: tuple[Weights, ...]
    target_deltas: tuple[Weights, ...]


def run_simulated_federations(
    design: FederationDesign,
    federations: Sequence[SimulatedFederation],
    pool: Examples,
    knowledge: Knowledge,
    build_model: BuildModel,
) -> Iterator[SimulatedRound]:
    """Train all federations and yield each round: what the observer would see of the target.

    The clients train as `knowledge` states, with the defenses that it knows, and with their own
    control variates if the algorithm has them. These begin at 0. The first round starts from
    `design.start` or, without it, from weights built anew for each federation.

    Raises:
        NeedsError: if a training diverges.

    """
    states = [
        ServerState(
            initial_weights(build_model, federation.seed.child("initial"))
            if design.start is None
            else design.start,
            clients=design.clients,
        )
        for federation in federations
    ]
    for place in range(design.rounds):
        knowledge.compute.on_progress(DESCRIPTION, place, design.rounds)
        updates = _train_round(design, federations, states, place, pool, knowledge, build_model)
        deltas = tuple(
            _target_delta(design, federation, state, sent, knowledge)
            for federation, state, sent in zip(federations, states, updates, strict=True)
        )
        yield SimulatedRound(place, tuple(state.weights for state in states), deltas)
        states = [
            _next_state(federation, state, sent, place, knowledge)
            for federation, state, sent in zip(federations, states, updates, strict=True)
        ]
    knowledge.compute.on_progress(DESCRIPTION, design.rounds, design.rounds)


def _train_round(
    design: FederationDesign,
    federations: Sequence[SimulatedFederation],
    states: Sequence[ServerState],
    place: int,
    pool: Examples,
    knowledge: Knowledge,
    build_model: BuildModel,
) -> list[list[Update]]:
    """Return the updates of all clients, by federation, after their defenses."""
    algorithm = _algorithm(knowledge)
    updates: list[list[Update]] = [[] for _ in federations]
    for number, recipe in enumerate(knowledge.candidate_recipes()):
        members = [k for k, one in enumerate(federations) if one.recipe == number]
        if not members:
            continue
        groups = [
            _group(federations[k], states[k], design.chunk_of(place), place, pool, knowledge)
            for k in members
        ]
        clients = [one for group in groups for one in group.clients]
        examples = sum(len(one.rows) for one in clients) / max(1, len(clients))
        device = settled_device(
            knowledge,
            pool.inputs,
            len(clients) * design.rounds,
            examples,
            are_jobs=False,
            part="simulated federations",
        )
        results = train_groups(
            build_model,
            groups,
            recipe,
            round=place,
            workers=knowledge.compute.workers,
            device=device,
        )
        for k, group in zip(members, groups, strict=True):
            defended = SimulatedDefenses(knowledge.defenses or (), place, group.seed)
            updates[k] = [
                _with_control(defended.defended_update(one), algorithm, states[k], one, recipe)
                for one in islice(results, len(group.clients))
            ]
    return updates


def _group(
    federation: SimulatedFederation,
    state: ServerState,
    chunk: int,
    place: int,
    pool: Examples,
    knowledge: Knowledge,
) -> TrainingGroup:
    """Return the clients of a federation with their examples, after the defenses of data."""
    rows, defenses = federation.rows[chunk], knowledge.defenses or ()
    names = [str(client(number)) for number in range(len(rows))]
    algorithm = _algorithm(knowledge)
    corrections = [algorithm.correction(state, Party(name)) for name in names]
    if all(type(one).on_data is Defense.on_data for one in defenses):
        tasks = [
            ClientTask(name, held, correction=correction)
            for name, held, correction in zip(names, rows, corrections, strict=True)
        ]
        return TrainingGroup(state.weights, pool, tasks, federation.seed)
    defended = SimulatedDefenses(defenses, place, federation.seed)
    held_by = [
        defended.defended_examples(pool.take(held), name, knowledge.background)
        for name, held in zip(names, rows, strict=True)
    ]
    ends = torch.tensor([len(held) for held in held_by]).cumsum(0).tolist()
    tasks = [
        ClientTask(name, torch.arange(end - len(held), end), correction=correction)
        for name, held, end, correction in zip(names, held_by, ends, corrections, strict=True)
    ]
    return TrainingGroup(state.weights, concatenate_examples(held_by), tasks, federation.seed)


def _with_control(
    update: Update,
    algorithm: Algorithm,
    state: ServerState,
    trained: ClientResult,
    recipe: Recipe,
) -> Update:
    """Return the update with the change of its client's control variate, if there is one."""
    scale = trained.client.steps_in(recipe) * recipe.rate
    party = Party(trained.client.name)
    return replace(update, control=algorithm.control_change(state, party, trained.delta, scale))


def _target_delta(
    design: FederationDesign,
    federation: SimulatedFederation,
    state: ServerState,
    sent: Sequence[Update],
    knowledge: Knowledge,
) -> Weights:
    """Return the mean update of the target's clients, as the observer reads it."""
    recipe = knowledge.candidate_recipes()[federation.recipe]
    updates = []
    for number in design.target:
        update = sent[number]
        correction = _algorithm(knowledge).correction(state, client(number))
        if design.is_plain and correction is not None:
            scale = recipe.steps(update.examples or 1) * recipe.rate
            update = replace(update, delta=without_correction(update.delta, correction, scale))
        updates.append(update)
    return mean_update(updates).delta


def _algorithm(knowledge: Knowledge) -> Algorithm:
    """Return the known algorithm, or else FedAvg."""
    return Algorithm() if knowledge.algorithm is None else knowledge.algorithm


def _next_state(
    federation: SimulatedFederation,
    state: ServerState,
    updates: Sequence[Update],
    place: int,
    knowledge: Knowledge,
) -> ServerState:
    """Return the server's state after a round, under the known algorithm or else FedAvg."""
    algorithm = _algorithm(knowledge)
    recipe = knowledge.candidate_recipes()[federation.recipe]
    received = [
        ReceivedUpdate(client(number), _with_steps(update, algorithm, recipe))
        for number, update in enumerate(updates)
    ]
    deltas, sizes = [update.delta for update in updates], [one.examples for one in updates]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    parties = frozenset(one.sender for one in received)
    aggregate = Aggregate(weighted_sum(deltas, algorithm.factors(received)), parties, total)
    defended = SimulatedDefenses(knowledge.defenses or (), place, federation.seed)
    for defense in defended.defenses:
        context = defended.defense_context(defense, "+".join(sorted(parties)))
        aggregate = defense.on_aggregate(aggregate, context)
    after = algorithm.next_state(place, state, aggregate.delta, received)
    return replace(after, weights=without_negative_variances(after.weights))


def _with_steps(update: Update, algorithm: Algorithm, recipe: Recipe) -> Update:
    """Return the update with the number of local steps, if the algorithm reports it."""
    steps = algorithm.reported_steps(recipe, recipe.steps(update.examples or 1))
    if steps is None:
        return update
    return replace(update, metrics={**update.metrics, LOCAL_STEPS: steps})
