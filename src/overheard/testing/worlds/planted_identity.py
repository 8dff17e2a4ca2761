"""Federations of people, who differ or do not, heard within a second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.means import Means, MemoryShelf
from overheard.core.messages import Broadcast, Message, Update, Weights, moved
from overheard.core.parties import SERVER, Party, client, shadow
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.cohort import Member, Trained
from overheard.learning.initial import initial_weights
from overheard.learning.train import train_cohort

CLASSES: Final = 4
FEATURES: Final = 8
ROUNDS: Final = 4

KNOWN: Final = 8
UNSEEN: Final = 1
HOLDOUT: Final = 12
"""Users who may be named, who take part unknown to the attacker, and who take no part."""

EXAMPLES: Final = 32
"""Of each user, prior and private alike, if nothing else is said."""

ATTRIBUTE: Final = "hand"
VALUES: Final = ("left", "right")

RECIPE = Recipe(rate=0.1, epochs=1, batch=8)


@dataclass(frozen=True)
class Person:
    """What sets one user apart: which labels, which look, how many, and which hand."""

    name: str
    chances: Tensor
    look: Tensor
    size: int
    hand: str

    def examples(self, seed: Seed) -> Examples:
        """As many of this person's examples as it has, drawn anew."""
        draw = seed.generator()
        labels = torch.multinomial(self.chances, self.size, True, generator=draw)
        centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=Seed(1).generator())
        noise = torch.randn(self.size, FEATURES, generator=draw)
        return Examples(centres[labels] + self.look + noise, labels)


@dataclass(frozen=True, eq=False)
class Peopled:
    """A run of some rounds, its truth, what the attacker knows, and whom to ask about."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge
    targets: tuple[Party, ...]


def build() -> nn.Module:
    """Give a small net."""
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def person(number: int) -> Person:
    """Every user but by its number the same in every world."""
    draw = Seed(5).child("person", number).generator()
    hand = number % 2
    liking = 2.0 * torch.tensor([1, -1, 1, -1]) * (2 * hand - 1)
    chances = (1.5 * torch.randn(CLASSES, generator=draw) + liking).softmax(0)
    look = torch.randn(FEATURES, generator=draw)
    return Person(f"user {number}", chances, look, EXAMPLES + 6 * (number % 5), VALUES[hand])


def anybody(number: int) -> Person:
    """Users who are all alike."""
    chances = torch.full((CLASSES,), 1 / CLASSES)
    return Person(
        f"user {number}", chances, torch.zeros(FEATURES), EXAMPLES, VALUES[number % 2]
    )


def federate_people(
    people: Sequence[Person],
    seed: Seed,
    *,
    known: int = KNOWN,
    unseen: int = UNSEEN,
    rounds: int = ROUNDS,
    anonymous: bool = True,
    fresh: bool = False,
    asked: Mapping[int, Sequence[int]] | None = None,
) -> Peopled:
    """Hold the rounds of a federation of these people, and of shadow devices of their priors.

    Args:
        people: first whom the attacker may name, then whom it does not know, then holdout
            users.
        seed: of examples, training and names.
        known: how many may be named.
        unseen: how many it does not know.
        rounds: how many there are.
        anonymous: whether a sender has another name in every round.
        fresh: whether clients hold other examples in every round, so that nothing of the last
            ones links what they send.
        asked: by round, the numbers of shadow devices that answer; None = all of them.

    """
    private = people[: known + unseen]
    prior = {
        one.name: one.examples(seed.child("prior", one.name))
        for place, one in enumerate(people)
        if not known <= place < known + unseen
    }
    clients = [client(number) for number in range(known + unseen)]
    devices = {shadow(number): name for number, name in enumerate(prior)}
    start = dict(initial_weights(build, seed.child("start")))
    said, users, counts, targets = [], {}, {}, []
    for number in range(rounds):
        own = seed.child("private", number if fresh else 0)
        held = {
            who: one.examples(own.child(one.name))
            for who, one in zip(clients, private, strict=True)
        }
        held |= {device: prior[name] for device, name in devices.items()}
        said.append(Message(number, SERVER, frozenset(held), Broadcast(start)))
        answering = [
            who
            for who in held
            if asked is None or who in clients or int(who.partition("/")[2]) in asked[number]
        ]
        updates = {
            one.member.name: Update(one.delta, len(one.member.rows), {"loss": one.loss})
            for one in _trained(start, {who: held[who] for who in answering}, number, seed)
        }
        order = torch.randperm(len(clients), generator=seed.child("names", number).generator())
        for rank, place in enumerate(order.tolist() if anonymous else range(len(clients))):
            who = Party(f"anon/{number}-{rank}") if anonymous else clients[place]
            said.append(Message(number, who, frozenset({SERVER}), updates[clients[place]]))
            users[who] = people[place].name
            counts[number, who] = held[clients[place]].counts(CLASSES)
            targets.append(who)
        said += [
            Message(number, who, frozenset({SERVER}), updates[who])
            for who in answering
            if who in devices
        ]
        start = moved(start, mean_update(list(updates.values())).delta)
    hands = {one.name: one.hand for one in people}
    return Peopled(
        Transcript(tuple(said)),
        GroundTruth(counts, {}, users=users, attributes={ATTRIBUTE: hands}),
        _known_of(people, known, unseen, prior, devices),
        tuple(dict.fromkeys(targets)),
    )


def _known_of(
    people: Sequence[Person],
    known: int,
    unseen: int,
    prior: Mapping[str, Examples],
    devices: Mapping[Party, str],
) -> Knowledge:
    """What the attacker knows of these people, by their prior examples."""
    return Knowledge(
        CLASSES,
        build,
        recipe=RECIPE,
        means=Means(shelf=MemoryShelf(), workers=1),
        people=KnownUsers(
            {one.name: prior[one.name] for one in people[:known]},
            {one.name: prior[one.name] for one in people[known + unseen :]},
            devices,
            {
                one.name: torch.cat((3 * one.chances, one.look))
                for one in people
                if one.name in prior
            },
            {ATTRIBUTE: {one.name: one.hand for one in people if one.name in prior}},
        ),
    )


def _trained(
    start: Weights, held: Mapping[Party, Examples], number: int, seed: Seed
) -> list[Trained]:
    pool = Examples(
        torch.cat([one.inputs for one in held.values()]),
        torch.cat([one.labels for one in held.values()]),
    )
    rows = torch.split(torch.arange(len(pool)), [len(one) for one in held.values()])
    members = [Member(who, own) for who, own in zip(held, rows, strict=True)]
    return list(train_cohort(build, start, pool, members, RECIPE, seed=seed, round=number))


EVERYONE = range(KNOWN + UNSEEN + HOLDOUT)
