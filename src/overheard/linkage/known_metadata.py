"""Metadata of known users' updates: from shadow devices, or from simulated training."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.defense import DefenseContext
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Weights
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.threads import single_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.linkage.metadata_features import read_metadata, subtract_round_means
from overheard.linkage.prior_client import PriorClient, concatenate_users, split_priors

LOSS = "loss"
"""The metric that clients of Overheard's own federation report: see `learning.training_job`."""


@final
@dataclass(frozen=True, slots=True)
class KnownMetadata:
    """Metadata of candidate users' updates, one row an update.

    Args:
        names: name of each column, as in `MetadataFeatures`.
        values: values less the mean of their round; NaN = missing.
        users: each row's user, as an index into the names of `KnownUsers.prior_examples`.
        clients: each row's shadow device, or chunk of prior examples.

    """

    names: tuple[str, ...]
    values: Float[Tensor, "updates numbers"]
    users: Int[Tensor, " updates"]
    clients: Int[Tensor, " updates"]


def read_shadow_metadata(
    view: View, knowledge: Knowledge, *, with_order: bool
) -> KnownMetadata:
    """Read the metadata of candidate users' shadow devices in the run.

    Raises:
        NeedsError: if no such device took part.

    """
    known_users = KnownUsers.of(knowledge)
    users = tuple(known_users.prior_examples)
    user_of_device = {
        device: user
        for device, user in known_users.shadow_devices.items()
        if user in known_users.prior_examples
    }
    features = read_metadata(view, user_of_device.keys(), with_order=with_order)
    if not features.senders:
        raise NeedsError(
            "no shadow device took part, so there is no metadata of them: set "
            "data.people.shadow_devices, or updates = 'simulated'"
        )
    device_indices = {device: index for index, device in enumerate(user_of_device)}
    return KnownMetadata(
        features.names,
        features.values,
        torch.tensor([users.index(user_of_device[device]) for device in features.senders]),
        torch.tensor([device_indices[device] for device in features.senders]),
    )


def simulate_metadata(
    view: View, knowledge: Knowledge, *, chunks: int, max_rounds: int
) -> KnownMetadata:
    """Simulate the losses that known users would report, training from the broadcasts.

    Prior examples are split into chunks, each trained by its own virtual client. The difference
    between the losses of one user's chunks estimates the spread over the user's other examples.

    Args:
        view: the view with the broadcasts.
        knowledge: prior examples, a model and a recipe.
        chunks: consecutive chunks per user; fewer if the user has fewer examples.
        max_rounds: most rounds to simulate, evenly spaced among those with a broadcast.

    Raises:
        NeedsError: if the model, the recipe or every broadcast is missing.

    """
    broadcasts = view.broadcasts()
    if knowledge.build_model is None or knowledge.recipe is None or not broadcasts:
        raise NeedsError(
            "simulated metadata needs broadcasts, the model's architecture and the recipe: "
            "grant them, or set updates = 'shadow'"
        )
    priors = KnownUsers.of(knowledge).prior_examples
    clients = split_priors(priors, chunks)
    rounds = sorted(broadcasts)
    indices = torch.linspace(0, len(rounds) - 1, min(max_rounds, len(rounds))).round().int()
    chosen = [rounds[place] for place in indices.tolist()]
    with single_thread():
        losses = [_losses(broadcasts[number], knowledge, clients, number) for number in chosen]
    values = torch.tensor(losses, dtype=torch.float64).reshape(-1, 1)
    users = tuple(priors)
    return KnownMetadata(
        (LOSS,),
        subtract_round_means(values, torch.tensor(chosen).repeat_interleave(len(clients))),
        torch.tensor([users.index(client.user) for client in clients]).repeat(len(chosen)),
        torch.arange(len(clients)).repeat(len(chosen)),
    )


def _losses(
    start: Weights, knowledge: Knowledge, clients: Sequence[PriorClient], number: int
) -> list[float]:
    """Return the loss of each virtual client in one round, with the known defenses in force.

    The known model and recipe have the changes of training already. NaN if a defense leaves a
    client without examples.
    """
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    seed, device = knowledge.compute.seed.child("prior losses"), knowledge.compute.own_device
    examples = concatenate_users(KnownUsers.of(knowledge).prior_examples)
    client_data = [
        _apply_data_defenses(client, examples, knowledge, number, seed) for client in clients
    ]
    pool = concatenate_users(
        {client.name: data for client, data in zip(clients, client_data, strict=True)}
    )
    ends = torch.tensor([len(data) for data in client_data]).cumsum(0).tolist()
    members = [
        ClientTask(client.name, torch.arange(end - len(data), end))
        for client, data, end in zip(clients, client_data, ends, strict=True)
        if len(data)
    ]
    trained = train_cohort(
        knowledge.build_model,
        start,
        pool.to(device),
        members,
        knowledge.recipe,
        seed=seed.child("training"),
        round=number,
        workers=knowledge.compute.workers,
        device=device,
    )
    losses = {client.client.name: client.loss for client in trained}
    return [losses.get(client.name, nan) for client in clients]


def _apply_data_defenses(
    client: PriorClient, examples: Examples, knowledge: Knowledge, number: int, seed: Seed
) -> Examples:
    """Apply the known defenses to a virtual client's examples."""
    data = examples.take(torch.arange(client.begin, client.end))
    for defense in knowledge.defenses or ():
        defense_seed = seed.child("defense", defense.name)
        context = DefenseContext(
            number,
            Party(client.name),
            defense_seed.child(number, client.name),
            background=knowledge.background,
            persistent_seed=defense_seed.child("lasting", client.name),
        )
        data = defense.on_data(data, context)
    return data
