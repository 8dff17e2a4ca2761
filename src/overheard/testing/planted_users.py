"""Runs with planted users, distinct or identical, small enough to attack within a second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import torch
from torch import Tensor, nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Message, Update, Weights, apply_update
from overheard.core.parties import SERVER, Party, client, is_shadow_device, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask
from overheard.testing.trial import (
    AttackTrial,
    PlantedRun,
    QuestionChecks,
    require_gain,
    require_no_gain,
)

CLASSES: Final = 4
FEATURES: Final = 8
ROUNDS: Final = 4

KNOWN: Final = 8
UNKNOWN: Final = 1
HOLDOUT: Final = 12
"""Numbers of candidate users, of users unknown to the attacker, and of holdout users."""

EXAMPLES: Final = 32
"""Default number of a user's prior examples, and of its private examples."""

ATTRIBUTE: Final = "hand"
VALUES: Final = ("left", "right")

RECIPE = Recipe(rate=0.1, epochs=1, batch=8)


@dataclass(frozen=True)
class SyntheticUser:
    """A synthetic user: label probabilities, input offset, number of examples and hand."""

    name: str
    label_probabilities: Tensor
    offset: Tensor
    size: int
    hand: str

    def examples(self, seed: Seed) -> Examples:
        """Draw the user's number of examples."""
        generator = seed.generator()
        labels = torch.multinomial(
            self.label_probabilities, self.size, True, generator=generator
        )
        centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=Seed(1).generator())
        noise = torch.randn(self.size, FEATURES, generator=generator)
        return Examples(centres[labels] + self.offset + noise, labels)


def users_of(run: PlantedRun) -> Mapping[Party, str]:
    """Return the user of each target."""
    return run.truth.facts.need(UsersOfClients).users


def build() -> nn.Module:
    """Build a small network."""
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def make_user(number: int) -> SyntheticUser:
    """Make a user that depends on its number alone."""
    generator = Seed(5).child("person", number).generator()
    hand = number % 2
    liking = 2.0 * torch.tensor([1, -1, 1, -1]) * (2 * hand - 1)
    chances = (1.5 * torch.randn(CLASSES, generator=generator) + liking).softmax(0)
    look = torch.randn(FEATURES, generator=generator)
    return SyntheticUser(
        f"user {number}", chances, look, EXAMPLES + 6 * (number % 5), VALUES[hand]
    )


def make_identical_user(number: int) -> SyntheticUser:
    """Make a user that differs from others in name and hand only."""
    chances = torch.full((CLASSES,), 1 / CLASSES)
    return SyntheticUser(
        f"user {number}", chances, torch.zeros(FEATURES), EXAMPLES, VALUES[number % 2]
    )


def simulate_users(
    synthetic_users: Sequence[SyntheticUser],
    seed: Seed,
    *,
    known: int = KNOWN,
    unknown: int = UNKNOWN,
    rounds: int = ROUNDS,
    anonymous: bool = True,
    redraw_examples: bool = False,
    device_cohorts: Mapping[int, Sequence[int]] | None = None,
) -> PlantedRun:
    """Simulate a run of these users, with shadow devices that train on their prior examples.

    Args:
        synthetic_users: the candidate users, then the users unknown to the attacker, then
            holdout users.
        seed: seed of examples, training and pseudonyms.
        known: number of candidate users.
        unknown: number of users unknown to the attacker.
        rounds: number of rounds.
        anonymous: whether a sender has a new pseudonym in every round.
        redraw_examples: whether clients have new examples in every round, so that updates
            cannot be linked by their examples.
        device_cohorts: numbers of the shadow devices that reply, by round; None = all of them.

    """
    private = synthetic_users[: known + unknown]
    prior = {
        user.name: user.examples(seed.child("prior", user.name))
        for index, user in enumerate(synthetic_users)
        if not known <= index < known + unknown
    }
    clients = [client(number) for number in range(known + unknown)]
    devices = {shadow_device(number): name for number, name in enumerate(prior)}
    start = dict(initial_weights(build, seed.child("start")))
    sent, true_users, counts, targets = [], {}, {}, []
    for number in range(rounds):
        data_seed = seed.child("private", number if redraw_examples else 0)
        data = {
            party: user.examples(data_seed.child(user.name))
            for party, user in zip(clients, private, strict=True)
        }
        data |= {device: prior[name] for device, name in devices.items()}
        sent.append(Message(number, SERVER, frozenset(data), Broadcast(start)))
        sampled = None if device_cohorts is None else device_cohorts[number]
        cohort = [party for party in data if _is_sampled(party, sampled)]
        updates = {
            one.client.name: Update(one.delta, len(one.client.rows), {"loss": one.loss})
            for one in _train(start, {party: data[party] for party in cohort}, number, seed)
        }
        order = torch.randperm(len(clients), generator=seed.child("names", number).generator())
        for rank, index in enumerate(order.tolist() if anonymous else range(len(clients))):
            party = Party(f"anon/{number}-{rank}") if anonymous else clients[index]
            sent.append(Message(number, party, frozenset({SERVER}), updates[clients[index]]))
            true_users[party] = synthetic_users[index].name
            counts[number, party] = data[clients[index]].label_counts(CLASSES)
            targets.append(party)
        sent += [
            Message(number, party, frozenset({SERVER}), updates[party])
            for party in cohort
            if party in devices
        ]
        start = apply_update(start, mean_update(list(updates.values())).delta)
    attributes = Attributes({ATTRIBUTE: {user.name: user.hand for user in synthetic_users}})
    return PlantedRun(
        Transcript(tuple(sent)),
        GroundTruth(Facts(LabelCounts(counts), UsersOfClients(true_users), attributes)),
        _make_knowledge(synthetic_users, known, unknown, prior, devices),
        tuple(dict.fromkeys(targets)),
    )


def _is_sampled(party: Party, devices: Sequence[int] | None) -> bool:
    """Return whether a party replies: clients always, shadow devices only if listed."""
    return (
        devices is None
        or not is_shadow_device(party)
        or int(party.partition("/")[2]) in devices
    )


def _make_knowledge(
    synthetic_users: Sequence[SyntheticUser],
    known: int,
    unseen: int,
    prior: Mapping[str, Examples],
    devices: Mapping[Party, str],
) -> Knowledge:
    """Return the attacker's knowledge of these users, including their prior examples."""
    known_users = KnownUsers(
        {user.name: prior[user.name] for user in synthetic_users[:known]},
        {user.name: prior[user.name] for user in synthetic_users[known + unseen :]},
        devices,
        {
            user.name: torch.cat((3 * user.label_probabilities, user.offset))
            for user in synthetic_users
            if user.name in prior
        },
        {ATTRIBUTE: {user.name: user.hand for user in synthetic_users if user.name in prior}},
    )
    return Knowledge(
        CLASSES,
        build,
        recipe=RECIPE,
        compute=ComputeSettings(cache=MemoryTensorCache(), workers=1),
        facts=Facts(known_users),
    )


def _train(
    start: Weights, client_examples: Mapping[Party, Examples], number: int, seed: Seed
) -> list[ClientResult]:
    pool = Examples(
        torch.cat([examples.inputs for examples in client_examples.values()]),
        torch.cat([examples.labels for examples in client_examples.values()]),
    )
    rows = torch.split(
        torch.arange(len(pool)), [len(examples) for examples in client_examples.values()]
    )
    members = [
        ClientTask(party, client_rows)
        for party, client_rows in zip(client_examples, rows, strict=True)
    ]
    return list(train_cohort(build, start, pool, members, RECIPE, seed=seed, round=number))


ALL_USERS = range(KNOWN + UNKNOWN + HOLDOUT)


@cache
def distinct_users_run() -> PlantedRun:
    """Return a run whose users differ in label frequencies, inputs and size."""
    return simulate_users([make_user(number) for number in ALL_USERS], Seed(0))


@cache
def identical_users_run() -> PlantedRun:
    """Return a run with identical users, who have new examples in every round."""
    identical_users = [make_identical_user(number) for number in ALL_USERS]
    return simulate_users(identical_users, Seed(0), redraw_examples=True)


def identifies_users(trial: AttackTrial) -> None:
    """Check that it beats the uninformed guess where users differ."""
    require_gain(trial, 0.25, "users differ")


def identifies_no_identical_users(trial: AttackTrial) -> None:
    """Check that it does not beat the uninformed guess where users are identical."""
    require_no_gain(trial, 0.15, "users are identical")


USER_CHECKS = (identifies_users, identifies_no_identical_users)

AGES = {"u0": "old", "u1": "young", "u2": "young"}
"""The users whom an attacker knows in the example of a question about users, and their ages."""


class UserQuestionChecks(QuestionChecks):
    """What the checks of all questions about users have in common: runs, and who is who."""

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run of distinct users."""
        return (distinct_users_run(),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return a run of identical users."""
        return (identical_users_run(),)

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with the users of three clients, and their ages."""
        users = {client(0): "u0", client(1): "u1", client(2): "u0"}
        return truth.having(UsersOfClients(users)).having(Attributes({"age": AGES}))

    def add_knowledge(self, knowledge: Knowledge) -> Knowledge:
        """Return the knowledge with users who all have the same examples."""
        assert knowledge.auxiliary is not None
        known = KnownUsers(dict.fromkeys(AGES, knowledge.auxiliary), attributes={"age": AGES})
        return replace(knowledge, facts=Facts(known))
