"""Updates of known users to learn from, and those of targets to be told apart, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.needs import BROADCASTS, MODEL, RECIPE, USERS
from overheard.core.parties import Party, is_shadow
from overheard.core.view import View
from overheard.linkage.layers import Layer, tensors_of
from overheard.linkage.learner import learners_of
from overheard.linkage.simulated_updates import simulated_updates
from overheard.linkage.sketch import sketch_for

Source = Literal["shadow", "simulated"]
"""Where labelled updates come from: shadow devices, which take part in the run with prior
examples, as published; or the attacker's own training on them at each broadcast, for which
nobody has to let it take part."""

MOST_ROUNDS = 24
"""Rounds in which known users are trained, at most."""


@dataclass(frozen=True, slots=True)
class SentUpdates:
    """What some parties sent, one row an update, sender by sender and round by round.

    Args:
        vectors: the chosen layer of each, sketched where it is large.
        senders: of each.
        rounds: of each.

    """

    vectors: Float[Tensor, "updates dims"]
    senders: tuple[Party, ...]
    rounds: Int[Tensor, " updates"]

    def rows(self) -> dict[Party, Int[Tensor, " _updates"]]:
        """The rows of each sender."""
        rows: dict[Party, list[int]] = {}
        for row, who in enumerate(self.senders):
            rows.setdefault(who, []).append(row)
        return {who: torch.tensor(own) for who, own in rows.items()}


@dataclass(frozen=True, slots=True)
class KnownUpdates:
    """Updates of which the attacker knows the user, one row each, round by round.

    A user may have none: with no example, or on a shadow device that was never asked.

    Args:
        vectors: as `SentUpdates` has them.
        people: whose, as a place in `names`.
        rounds: of each.
        chunks: which piece of the user's prior each was trained on, the earliest being 0.
        names: users who may be named, then holdout users.
        named: how many of them may be named.

    """

    vectors: Float[Tensor, "updates dims"]
    people: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]
    chunks: Int[Tensor, " updates"]
    names: tuple[str, ...]
    named: int


def sent_updates(view: View, senders: Sequence[Party], layer: Layer) -> SentUpdates:
    """Read one layer of all that these parties sent, one tensor of one update at a time.

    Raises:
        NeedsError: if the model has no such layer, nothing of a sender can be read, or what it
            sent is no number.

    """
    heard: dict[Party, dict[int, Weights]] = {who: {} for who in senders}
    for message in view.messages:
        if isinstance(message.body, Update) and message.sender in heard:
            heard[message.sender][message.round] = message.body.delta
    silent = [who for who, own in heard.items() if not own]
    if silent:
        raise NeedsError(f"no update can be read of {', '.join(silent)}: ask about others")
    sent = [(who, number) for who, own in heard.items() for number in sorted(own)]
    vectors = _vectors([heard[who][number] for who, number in sent], layer)
    broken = [sent[row] for row in (~vectors.isfinite().all(1)).nonzero().flatten().tolist()]
    if broken:
        told = ", ".join(f"{who} in round {number}" for who, number in broken)
        raise NeedsError(
            f"the updates of {told} hold NaN, or numbers too large to add up, and lie near to "
            "none: leave them out of the recording"
        )
    return SentUpdates(
        vectors,
        tuple(who for who, _ in sent),
        torch.tensor([number for _, number in sent], dtype=torch.long),
    )


def known_updates(
    view: View,
    knowledge: Knowledge,
    source: Source,
    layer: Layer,
    chunks: int = 1,
    most_rounds: int = MOST_ROUNDS,
) -> KnownUpdates:
    """Updates of known users, heard from shadow devices or trained.

    Those that are trained start from the broadcast of every round in which anybody else was
    heard, follow the recipe and pass the defenses that the attacker knows of; they are kept on
    the shelf of `knowledge.means`, all layers of them, so no attack trains them again.

    Args:
        view: for broadcasts and shadow devices.
        knowledge: of users, and of how clients train.
        source: where the updates come from.
        layer: which part of each is given.
        chunks: pieces, one after another in time and about equally large, into which a prior
            is cut, each trained as a client of its own; a user with fewer examples has fewer.
            Shadow devices hold their priors whole.
        most_rounds: of which users are trained in, evenly spaced over those that there are;
            shadow devices are heard in all.

    Raises:
        NeedsError: if something is missing for that, saying which.
        PlanError: if a training runs away.
        WorkerError: if workers die again and again.

    """
    if chunks < 1 or most_rounds < 1:
        raise ValueError(f"chunks and most_rounds are 1 or more: {chunks}, {most_rounds}")
    people = knowledge.people
    names = tuple(people.examples())
    if len(people.priors) < 2:
        raise NeedsError(f"updates of known users need {USERS.words}")
    if source == "shadow":
        return _heard(view, knowledge, layer, names)
    broadcasts = _broadcasts(view, knowledge, most_rounds)
    learners = learners_of(people.examples(), chunks)
    if not learners:
        raise NeedsError(f"updates of known users need {USERS.words}, and all are empty")
    made = simulated_updates(
        broadcasts, knowledge, learners, tensors_of(layer, next(iter(broadcasts.values())))
    )
    places = {name: place for place, name in enumerate(names)}
    return KnownUpdates(
        made.vectors,
        torch.tensor([places[one.user] for one in learners], dtype=torch.long)[made.learners],
        made.rounds,
        torch.tensor([one.chunk for one in learners], dtype=torch.long)[made.learners],
        names,
        len(people.priors),
    )


def _heard(
    view: View, knowledge: Knowledge, layer: Layer, names: tuple[str, ...]
) -> KnownUpdates:
    devices = knowledge.people.devices
    there = set(view.senders())
    heard = [device for device in devices if device in there]
    if not heard:
        raise NeedsError(
            "updates of shadow devices need some that were heard: let them take part "
            "(data.people.shadow_devices = true), or train known users (updates = 'simulated')"
        )
    sent = sent_updates(view, heard, layer)
    places = {name: place for place, name in enumerate(names)}
    return KnownUpdates(
        sent.vectors,
        torch.tensor([places[devices[who]] for who in sent.senders], dtype=torch.long),
        sent.rounds,
        torch.zeros_like(sent.rounds),
        names,
        len(knowledge.people.priors),
    )


def _broadcasts(view: View, knowledge: Knowledge, most_rounds: int) -> dict[int, Weights]:
    """Those from which known users are trained, by round."""
    devices = knowledge.people.devices.keys()
    heard = {
        m.round
        for m in view.messages
        if isinstance(m.body, Update) and m.sender not in devices and not is_shadow(m.sender)
    }
    there = {
        m.round: m.body.weights
        for m in view.messages
        if isinstance(m.body, Broadcast) and m.round in heard
    }
    missing = [
        need.words
        for need, met in (
            (BROADCASTS, bool(there)),
            (MODEL, knowledge.build_model is not None),
            (RECIPE, knowledge.recipe is not None),
        )
        if not met
    ]
    if missing:
        raise NeedsError(
            f"to train known users (updates = 'simulated') needs {'; '.join(missing)}: grant "
            "the attacker what is missing, or let it have shadow devices (updates = 'shadow')"
        )
    rounds = sorted(there)
    places = torch.linspace(0, len(rounds) - 1, min(most_rounds, len(rounds))).round().int()
    return {rounds[place]: there[rounds[place]] for place in places.tolist()}


def _vectors(deltas: Sequence[Weights], layer: Layer) -> Float[Tensor, "updates dims"]:
    """Tensor by tensor, as the draws of one sketch take more memory than what comes of it."""
    names = tensors_of(layer, deltas[0])
    shapes = {name: tuple(deltas[0][name].shape) for name in names}
    widths = [sketch_for(name, shapes[name]).width for name in names]
    vectors = torch.empty(len(deltas), sum(widths))
    begin = 0
    for name, width in zip(names, widths, strict=True):
        sketch = sketch_for(name, shapes[name])
        for row, delta in enumerate(deltas):
            vectors[row, begin : begin + width] = sketch.of(delta[name])
        begin += width
    return vectors
