"""Updates of known users to learn from, and updates of senders in the view."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.algorithm.control_variates import corrected_history
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.needs import BROADCASTS, MODEL, RECIPE, USERS
from overheard.core.parties import Party, is_shadow_device
from overheard.core.view import View
from overheard.linkage.count_sketch import make_count_sketch
from overheard.linkage.layers import Layer, layer_tensors
from overheard.linkage.prior_client import PriorClient, split_priors
from overheard.linkage.simulated_updates import (
    SimulatedUpdates,
    simulate_corrected_updates,
    simulate_updates,
)

UpdateSource = Literal["shadow", "simulated"]
"""Source of updates of known users. "shadow": shadow devices, which take part in the run with
prior examples, as published. "simulated": the attacker's own training on prior examples from
each broadcast, which needs no access to the run."""

MAX_ROUNDS = 24
"""Most rounds in which known users are trained."""


@dataclass(frozen=True, slots=True)
class SenderUpdates:
    """Updates of some senders, one row an update, ordered by sender and then round.

    Args:
        vectors: the chosen layer of each update; large tensors are sketched.
        senders: sender of each update.
        rounds: round of each update.

    """

    vectors: Float[Tensor, "updates dims"]
    senders: tuple[Party, ...]
    rounds: Int[Tensor, " updates"]

    def rows_by_sender(self) -> dict[Party, Int[Tensor, " _updates"]]:
        """Return the rows of each sender."""
        rows: dict[Party, list[int]] = {}
        for row, sender in enumerate(self.senders):
            rows.setdefault(sender, []).append(row)
        return {sender: torch.tensor(sender_rows) for sender, sender_rows in rows.items()}


@dataclass(frozen=True, slots=True)
class KnownUpdates:
    """Updates whose user the attacker knows, one row an update, ordered by round.

    A user without examples, or whose shadow device was never sampled, has no update.

    Args:
        vectors: as in `SenderUpdates`.
        users: each update's user, as an index into `names`.
        rounds: round of each update.
        chunks: chunk of prior examples that each update was trained on; 0 is the earliest.
        names: names of the candidate users, then of the holdout users.
        candidate_count: number of candidate users, whom the attacker may name.

    """

    vectors: Float[Tensor, "updates dims"]
    users: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]
    chunks: Int[Tensor, " updates"]
    names: tuple[str, ...]
    candidate_count: int


def read_sender_updates(view: View, senders: Sequence[Party], layer: Layer) -> SenderUpdates:
    """Read one layer of all updates of some senders, one tensor of one update at a time.

    Raises:
        NeedsError: if the model has no such layer, a sender has no readable update, or an
            update contains NaN or infinity.

    """
    deltas: dict[Party, dict[int, Weights]] = {sender: {} for sender in senders}
    for message in view.messages:
        if isinstance(message.body, Update) and message.sender in deltas:
            deltas[message.sender][message.round] = message.body.delta
    silent = [sender for sender, by_round in deltas.items() if not by_round]
    if silent:
        raise NeedsError(f"no update of {', '.join(silent)} can be read: choose other targets")
    sent = [
        (sender, number) for sender, by_round in deltas.items() for number in sorted(by_round)
    ]
    vectors = _read_vectors([deltas[sender][number] for sender, number in sent], layer)
    broken = [sent[row] for row in (~vectors.isfinite().all(1)).nonzero().flatten().tolist()]
    if broken:
        listed = ", ".join(f"{sender} in round {number}" for sender, number in broken)
        raise NeedsError(
            f"the updates of {listed} contain NaN, or numbers too large to sum, so they cannot "
            "be compared: leave them out of the recording"
        )
    return SenderUpdates(
        vectors,
        tuple(sender for sender, _ in sent),
        torch.tensor([number for _, number in sent], dtype=torch.long),
    )


def load_known_updates(
    view: View,
    knowledge: Knowledge,
    source: UpdateSource,
    layer: Layer,
    chunks: int = 1,
    max_rounds: int = MAX_ROUNDS,
) -> KnownUpdates:
    """Load updates of known users, from shadow devices or from simulated training.

    Simulated training starts from the broadcast of every round with an update of somebody else.
    It follows the recipe, and applies the defenses that the attacker knows. All layers are
    cached in `knowledge.compute`, so no attack repeats the training.

    If the observed updates were corrected by control variates, so are those of known users:
    each follows its own variate from the first round on. It takes part in a round as often as
    clients do on average, as nobody knows who sent an update.

    Args:
        view: the view with broadcasts and shadow devices.
        knowledge: the known users, and how clients train.
        source: source of the updates.
        layer: the part of each update to return.
        chunks: consecutive, about equally large chunks of a user's prior examples, each trained
            by its own virtual client; fewer if the user has fewer examples. Shadow devices
            train on all prior examples.
        max_rounds: most rounds to simulate, evenly spaced over the available ones; updates of
            shadow devices are taken from all rounds, and so are corrected updates.

    Raises:
        NeedsError: if something is missing; the message names it.
        PlanError: if a training diverges.
        WorkerError: if workers die repeatedly.

    """
    if chunks < 1 or max_rounds < 1:
        raise ValueError(f"chunks and most_rounds must be 1 or more: {chunks}, {max_rounds}")
    users = KnownUsers.of(knowledge)
    names = tuple(users.all_prior_examples())
    if len(users.prior_examples) < 2:
        raise NeedsError(f"updates of known users need {USERS.description}")
    if source == "shadow":
        return _shadow_updates(view, knowledge, layer, names)
    broadcasts = _broadcasts(view, knowledge, max_rounds)
    clients = split_priors(users.all_prior_examples(), chunks)
    if not clients:
        raise NeedsError(
            f"updates of known users need {USERS.description}, but no known user has an example"
        )
    simulated = _simulate(view, knowledge, broadcasts, clients, layer)
    user_indices = {name: index for index, name in enumerate(names)}
    return KnownUpdates(
        simulated.vectors,
        torch.tensor([user_indices[client.user] for client in clients], dtype=torch.long)[
            simulated.clients
        ],
        simulated.rounds,
        torch.tensor([client.chunk for client in clients], dtype=torch.long)[simulated.clients],
        names,
        len(users.prior_examples),
    )


def _simulate(
    view: View,
    knowledge: Knowledge,
    broadcasts: Mapping[int, Weights],
    clients: Sequence[PriorClient],
    layer: Layer,
) -> SimulatedUpdates:
    """Simulate known users: all rounds if their updates are corrected, else these."""
    names = layer_tensors(layer, next(iter(broadcasts.values())))
    history = corrected_history(view)
    if not history or knowledge.algorithm is None:
        return simulate_updates(broadcasts, knowledge, clients, names)
    observed = _rounds_of_others(view, knowledge)
    history = {number: history[number] for number in sorted(history) if number <= max(observed)}
    simulated = simulate_corrected_updates(
        history, _participation(view, observed), knowledge, clients, names
    )
    rows = torch.isin(simulated.rounds, torch.tensor(sorted(observed)))
    return SimulatedUpdates(
        simulated.vectors[rows], simulated.clients[rows], simulated.rounds[rows]
    )


def _participation(view: View, rounds: Collection[int]) -> float:
    """Return the share of the clients that send an update in a round, on average."""
    readers = [m.readers - {m.sender} for m in view.messages if isinstance(m.body, Broadcast)]
    clients = sum(not is_shadow_device(party) for party in frozenset[Party]().union(*readers))
    sent = sum(
        isinstance(message.body, Update) and not is_shadow_device(message.sender)
        for message in view.messages
        if message.round in rounds
    )
    return min(1.0, sent / (clients * len(rounds))) if clients else 1.0


def _shadow_updates(
    view: View, knowledge: Knowledge, layer: Layer, names: tuple[str, ...]
) -> KnownUpdates:
    devices = KnownUsers.of(knowledge).shadow_devices
    senders = set(view.senders())
    observed = [device for device in devices if device in senders]
    if not observed:
        raise NeedsError(
            "no update of a shadow device can be read: let shadow devices take part "
            "(data.people.shadow_devices = true), or train known users (updates = 'simulated')"
        )
    sent = read_sender_updates(view, observed, layer)
    user_indices = {name: index for index, name in enumerate(names)}
    return KnownUpdates(
        sent.vectors,
        torch.tensor(
            [user_indices[devices[sender]] for sender in sent.senders], dtype=torch.long
        ),
        sent.rounds,
        torch.zeros_like(sent.rounds),
        names,
        len(KnownUsers.of(knowledge).prior_examples),
    )


def _broadcasts(view: View, knowledge: Knowledge, most_rounds: int) -> dict[int, Weights]:
    """Select the broadcasts from which known users are trained, by round."""
    observed = _rounds_of_others(view, knowledge)
    broadcasts = {
        m.round: m.body.weights
        for m in view.messages
        if isinstance(m.body, Broadcast) and m.round in observed
    }
    missing = [
        need.description
        for need, met in (
            (BROADCASTS, bool(broadcasts)),
            (MODEL, knowledge.build_model is not None),
            (RECIPE, knowledge.recipe is not None),
        )
        if not met
    ]
    if missing:
        raise NeedsError(
            f"training known users (updates = 'simulated') needs {'; '.join(missing)}: grant "
            "the attacker what is missing, or use shadow devices (updates = 'shadow')"
        )
    rounds = sorted(broadcasts)
    indices = torch.linspace(0, len(rounds) - 1, min(most_rounds, len(rounds))).round().int()
    return {rounds[index]: broadcasts[rounds[index]] for index in indices.tolist()}


def _rounds_of_others(view: View, knowledge: Knowledge) -> frozenset[int]:
    """Return the rounds with an update of a party that is no shadow device."""
    devices = KnownUsers.of(knowledge).shadow_devices.keys()
    return frozenset(
        m.round
        for m in view.messages
        if isinstance(m.body, Update)
        and m.sender not in devices
        and not is_shadow_device(m.sender)
    )


def _read_vectors(deltas: Sequence[Weights], layer: Layer) -> Float[Tensor, "updates dims"]:
    """Sketch tensor by tensor, as the draws of one sketch take more memory than its result."""
    names = layer_tensors(layer, deltas[0])
    shapes = {name: tuple(deltas[0][name].shape) for name in names}
    widths = [make_count_sketch(name, shapes[name]).width for name in names]
    vectors = torch.empty(len(deltas), sum(widths))
    begin = 0
    for name, width in zip(names, widths, strict=True):
        sketch = make_count_sketch(name, shapes[name])
        for row, delta in enumerate(deltas):
            vectors[row, begin : begin + width] = sketch.apply(delta[name])
        begin += width
    return vectors
