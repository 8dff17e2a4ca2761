"""What an observer assumes of the federation that it watches, in order to simulate it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.messages import Update, Weights
from overheard.core.parties import COHORT, SERVER
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.initialization import initial_weights
from overheard.simulation.client_sizes import size_range
from overheard.simulation.federations.design import FederationDesign
from overheard.simulation.target_groups import TargetGroup

MAX_CLIENTS = 10
"""Larger federations are simulated by this many clients, and the observers: the target then
varies more than the real one, so alarms are rarer than stated."""

EXCHANGES = 4
"""Sets of examples that each client holds in a run, one after the other, if not known. Clients
that exchange examples more often raise false alarms, and rarer exchanges hardly any."""

FRESH_MODELS = 8
"""Newly built models to which the first broadcast is compared."""

FRESH_TOLERANCE = 0.2
"""The largest relative difference of a tensor's root mean square from that of new models."""

SMALL_TENSOR = 100
"""Tensors of fewer numbers, such as biases, are compared by their largest number."""

SMALL_TOLERANCE = 2.0
"""The largest number of a small tensor, relative to that of new models."""


def assume_federation(
    view: View,
    knowledge: Knowledge,
    build_model: BuildModel,
    group: TargetGroup,
    exchange_every: int | None = None,
) -> FederationDesign:
    """Return the federation that the observer of these targets simulates.

    The observer knows how many clients there are, and simulates all rounds from the first to
    the last observed one. As in Brunner and Montuoro, a rival without reported sizes assumes
    that the others are as large as itself. The start is the first observed broadcast, unless it
    is that of round 0 and like a newly built model.

    Args:
        view: what the observer sees.
        knowledge: with auxiliary examples, whose label shares clients have on average.
        build_model: builds the architecture.
        group: targets with the same rounds.
        exchange_every: rounds after which clients replace their examples; None = `EXCHANGES`
            sets of examples for each client.

    """
    first, last = group.rounds[0], group.rounds[-1]
    rounds = last - first + 1
    own = [party for party in view.senders() if party in view.observers]
    if group.cohort_size is None:
        observers, target = 0, 1
        clients = min(len(view.senders()), MAX_CLIENTS)
    else:
        observers, target = len(own), min(_expected_cohort(view, group), MAX_CLIENTS)
        clients = observers + target
    shares = knowledge.auxiliary_label_shares()
    start = view.broadcasts()[first]
    is_fresh = first == 0 and _is_like_new(start, build_model)
    return FederationDesign(
        clients=clients,
        observers=observers,
        target_clients=target,
        rounds=rounds,
        exchange_every=exchange_every or max(1, -(-rounds // EXCHANGES)),
        sizes=size_range(view, _prior_with_observed_sizes(view, knowledge)),
        label_shares=() if shares is None else tuple(shares.double().tolist()),
        splits=knowledge.prior.splits,
        recipes=len(knowledge.candidate_recipes()),
        start=None if is_fresh else start,
        is_plain=_reads_plain_updates(view),
    )


def _reads_plain_updates(view: View) -> bool:
    """Return whether the observer reads updates of others, and none with a control variate."""
    controls = [
        message.body.control
        for message in view.messages
        if isinstance(message.body, Update) and message.sender not in view.observers
    ]
    return bool(controls) and all(control is None for control in controls)


def _expected_cohort(view: View, group: TargetGroup) -> int:
    """Return the expected number of sampled clients per round.

    A client that reads broadcasts does not see who was sampled, but knows how often it was.
    """
    size = group.clients_per_update
    own = [party for party in view.observers if party not in (SERVER, COHORT)]
    if SERVER in view.observers or not own:
        return size
    rounds = set(group.rounds)
    sampled = sum(len(rounds.intersection(view.rounds_with_updates(party))) for party in own)
    share = sampled / (len(own) * len(rounds))
    return max(1, round(share * size)) if share else size


def _prior_with_observed_sizes(view: View, knowledge: Knowledge) -> Prior:
    prior = knowledge.prior
    own_sizes = [
        update.examples
        for observer in view.observers
        if observer != COHORT
        for update in view.updates(observer).values()
        if update.examples
    ]
    others = [sender for sender in view.senders() if sender not in view.observers]
    if prior.sizes is not None or not own_sizes or others:
        return prior
    return Prior(prior.splits, (min(own_sizes), max(own_sizes)), prior.recipes)


def _is_like_new(weights: Weights, build_model: BuildModel) -> bool:
    """Return whether each tensor is about as large as in newly built models."""
    models = [initial_weights(build_model, Seed(number)) for number in range(FRESH_MODELS)]
    return all(
        _is_within(weights[name], [model[name] for model in models]) for name in models[0]
    )


def _is_within(tensor: Tensor, fresh: Sequence[Tensor]) -> bool:
    if tensor.numel() < SMALL_TENSOR:
        # The size of a few numbers varies between models; only far larger ones were trained.
        largest = max(float(one.abs().max()) for one in fresh)
        return float(tensor.abs().max()) <= SMALL_TOLERANCE * largest
    size = tensor.double().square().mean().sqrt()
    sizes = torch.stack([one.double().square().mean().sqrt() for one in fresh])
    return bool((size - sizes.mean()).abs() <= FRESH_TOLERANCE * sizes.mean())
