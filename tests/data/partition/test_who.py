"""Whom clients stand for is told truly, and of whom nothing is known nothing is."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.parties import client, shadow
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.people import People
from overheard.data.partition.priors import part_users
from overheard.data.partition.who import MOST_PROFILES, Who, exchanged, who_is_known
from tests.data.persons import persons

# Six users of four examples each, in the order of time: the first two of each are prior.
SIX = persons([user for user in range(6) for _ in range(4)], [0, 1] * 12)
NAMED = replace(
    SIX,
    user_names=("ann", "bob", "cem", "dee", "eva", "fil", "gus"),
    attributes={"hand": ("left", "right", "left", "left", "right", "left", "right")},
)
"""There is a seventh, of whom there is a test example and none besides."""


def known_in(
    dataset: Dataset, people: People, taking_part: Sequence[int], seed: int = 0
) -> Who:
    """Clients that hold all private examples of these users."""
    free = torch.ones(len(dataset.train), dtype=torch.bool)
    parted = part_users(dataset, free, people, Seed(seed))
    assert dataset.users is not None
    held = [
        (parted.private & (dataset.users == user)).nonzero().flatten() for user in taking_part
    ]
    return who_is_known(dataset, parted, held, people, Seed(seed))


def test_a_client_is_whom_its_examples_are_of_and_the_attacker_has_the_earlier_ones() -> None:
    who = known_in(NAMED, People(), (1, 4))
    assert who.users == {client(0): "bob", client(1): "eva"}
    assert list(who.known.priors) == ["bob", "eva"]
    assert who.known.priors["bob"].inputs.flatten().tolist() == [4.0, 5.0]
    assert who.known.priors["eva"].inputs.flatten().tolist() == [16.0, 17.0]
    assert who.known.holdout == {}
    assert who.known.devices == {}
    assert who.devices == ()
    assert not bool(who.kept_out.any())


def test_users_without_a_name_are_called_by_their_number() -> None:
    who = known_in(SIX, People(), (0, 5))
    assert set(who.users.values()) == set(who.known.priors) == {"user 0", "user 5"}


def test_attributes_are_true_of_all_and_known_of_the_known() -> None:
    who = known_in(NAMED, People(unseen=1, holdout=2), (0, 1, 2))
    assert who.attributes == {"hand": dict(zip(NAMED.user_names, NAMED.attributes["hand"],
                                               strict=True))}  # fmt: skip
    # "gus" has no training example at all, and nobody stumbles over it.
    assert "gus" in who.attributes["hand"]
    assert who.known.attributes["hand"].keys() == who.known.examples().keys()
    assert len(who.known.examples()) == 4


def test_of_unseen_users_the_attacker_has_nothing_and_the_truth_knows_them() -> None:
    unseen = set()
    for seed in range(12):
        who = known_in(NAMED, People(unseen=1), (0, 1, 2, 3), seed)
        (one,) = set(who.users.values()) - who.known.examples().keys()
        assert one not in who.known.attributes["hand"]
        unseen.add(one)
    # Four are as likely: all of 12 draws leave one of them out once in eight times.
    assert len(unseen) >= 3


def test_holdout_users_are_some_who_take_no_part_and_their_examples_are_kept_out() -> None:
    chosen = set()
    for seed in range(6):
        who = known_in(NAMED, People(holdout=2), (0, 1), seed)
        assert len(who.known.holdout) == 2
        assert who.known.holdout.keys() <= {"cem", "dee", "eva", "fil"}
        numbers = {NAMED.user_names.index(name) for name in who.known.holdout}
        assert NAMED.users is not None
        assert set(NAMED.users[who.kept_out].tolist()) == numbers
        assert int(who.kept_out.sum()) == 8
        chosen |= who.known.holdout.keys()
    assert len(chosen) > 2


def test_each_known_prior_is_a_device_holdout_users_too_and_unseen_ones_not() -> None:
    people = People(unseen=1, holdout=1, shadow_devices=True)
    who = known_in(NAMED, people, (0, 1, 2, 3))
    assert list(who.known.devices) == [shadow(number) for number in range(4)]
    assert set(who.known.devices.values()) == who.known.examples().keys()
    for device, rows in zip(who.known.devices, who.devices, strict=True):
        played = who.known.examples()[who.known.devices[device]]
        assert NAMED.train.inputs[rows].equal(played.inputs)


def test_a_user_with_one_example_takes_part_and_is_not_known() -> None:
    lonely = persons([0, 1, 1, 2, 2], [0] * 5)
    who = known_in(lonely, People(shadow_devices=True), (0, 1, 2))
    assert set(who.users.values()) == {"user 0", "user 1", "user 2"}
    assert set(who.known.priors) == {"user 1", "user 2"}
    assert len(who.devices) == 2
    # Nor is it one whom the attacker could hold out.
    with pytest.raises(PlanError, match="1 holdout users are wanted and 0 users take no part"):
        known_in(lonely, People(holdout=1), (1, 2))


def test_too_few_users_are_refused() -> None:
    with pytest.raises(PlanError, match="of 3 clients 2 are unseen, and 1 of the others have"):
        known_in(SIX, People(unseen=2), (0, 1, 2))
    with pytest.raises(PlanError, match="of 2 clients 0 are unseen, and 0 of the others have"):
        known_in(persons([0, 1], [0, 0]), People(), (0, 1))
    with pytest.raises(PlanError, match="3 holdout users are wanted and 2 users take no part"):
        known_in(SIX, People(holdout=3), (0, 1, 2, 3))


def test_a_users_embedding_is_the_mean_over_its_prior_records() -> None:
    # Of user 0 the records 0 and 1 are prior, of three examples and of one: each counts once.
    cut = persons([0] * 6 + [1] * 2, [0] * 8, records=[0, 0, 0, 1, 2, 3, 4, 5])
    told = replace(cut, embeddings=torch.arange(12.0).reshape(6, 2))
    who = known_in(told, People(), (0, 1))
    assert who.known.embeddings["user 0"].tolist() == [1.0, 2.0]  # of (0, 1) and (2, 3)
    assert who.known.embeddings["user 1"].tolist() == [8.0, 9.0]
    # Where each example is a record, row i is example i.
    plain = replace(SIX, embeddings=torch.arange(24.0)[:, None])
    assert known_in(plain, People(), (0, 1)).known.embeddings["user 1"].tolist() == [4.5]
    assert known_in(SIX, People(), (0, 1)).known.embeddings == {}


def test_a_profile_is_all_prior_examples_of_a_label() -> None:
    # Of each user's four examples two are drawn, so of all labels those of the prior.
    who = known_in(SIX, People("profile"), (0, 1))
    free = torch.ones(24, dtype=torch.bool)
    prior = torch.cat(list(part_users(SIX, free, People("profile"), Seed(0)).prior.values()))
    for label, name in enumerate("ab"):
        known = set(who.known.priors[name].inputs.flatten().long().tolist())
        assert known == {row for row in prior.tolist() if row % 2 == label}
    # Nobody has an example of the third label.
    assert set(who.known.priors) == {"a", "b"}
    assert who.devices == ()


def test_a_client_stands_for_the_label_that_it_has_most_of_beside_the_others() -> None:
    # Held are (4, 1, 0), (4, 0, 1) and (4, 1, 1): of 16 12, 2 and 2. Client 0 has a fifth of b
    # and 2 / 16 is the mean, a lift of 1.6, above 0.8 / 0.75 of a; client 1 the same of c; the
    # third 1/6 over 1/8 = 1.33 of b and c alike: the first.
    labels = [*(0, 0, 0, 0, 1), *(0, 0, 0, 0, 2), *(0, 0, 0, 0, 1, 2)]
    users = [0] * 5 + [1] * 5 + [2] * 6
    dataset = persons(users, labels)
    parted = part_users(dataset, torch.ones(16, dtype=torch.bool), People("profile"), Seed(0))
    held = [torch.arange(5), torch.arange(5, 10), torch.arange(10, 16)]
    who = who_is_known(dataset, parted, held, People("profile"), Seed(0))
    assert who.users == {client(0): "b", client(1): "c", client(2): "b"}


def test_more_labels_than_profiles_may_be_are_refused() -> None:
    words = Task((1,), tuple(f"word {number}" for number in range(MOST_PROFILES + 1)))
    many = persons([0, 0, 1, 1], [0] * 4, task=words)
    with pytest.raises(PlanError, match="a profile a label makes 101 of them"):
        known_in(many, People("profile"), (0, 1))
    known_in(many, People("random"), (0, 1))


def test_what_is_exchanged_is_the_same_examples_in_hands_of_the_same_sizes() -> None:
    held = [torch.arange(10), torch.arange(10, 50), torch.arange(50, 51)]
    mixed = exchanged(held, Seed(0))
    assert sorted(len(rows) for rows in mixed) == [1, 10, 40]
    assert sorted(torch.cat(mixed).tolist()) == list(range(51))
    (ten,) = (rows for rows in mixed if len(rows) == 10)
    # Of ten from 51 two are of those of one hand in the mean.
    assert len(set(ten.tolist()) & set(range(10))) <= 6
    # Who gets how many is drawn: over ten seeds the first hand has each of the three sizes.
    first = {len(exchanged(held, Seed(seed))[0]) for seed in range(10)}
    assert first == {1, 10, 40}
    assert torch.cat(exchanged(held, Seed(0))).equal(torch.cat(mixed))
    assert not torch.cat(exchanged(held, Seed(1))).equal(torch.cat(mixed))
