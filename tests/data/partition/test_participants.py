"""Clients are mapped to their users, and the attacker knows no more than it should."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.parties import client, shadow_device
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.content_hash import hash_contents
from overheard.data.dataset import Dataset
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.participants import (
    MAX_PROFILES,
    Participants,
    identify_participants,
    permute_examples,
)
from overheard.data.partition.prior_private_split import split_prior_private
from tests.data.user_datasets import user_dataset

# Six users of four examples each, in the order of time: the first two of each are prior.
SIX = user_dataset([user for user in range(6) for _ in range(4)], [0, 1] * 12)
NAMED = replace(
    SIX,
    user_names=("ann", "bob", "cem", "dee", "eva", "fil", "gus"),
    attributes={"hand": ("left", "right", "left", "left", "right", "left", "right")},
)
"""The seventh user has no training example."""


def participants_of(
    dataset: Dataset, people: KnownUserSettings, taking_part: Sequence[int], seed: int = 0
) -> Participants:
    """Participants if each client holds all private examples of one of these users."""
    free = torch.ones(len(dataset.train), dtype=torch.bool)
    split = split_prior_private(dataset, hash_contents(dataset), free, people, 1000, Seed(seed))
    assert dataset.users is not None
    client_rows = [
        (split.private & (dataset.users == user)).nonzero().flatten() for user in taking_part
    ]
    return identify_participants(dataset, split, client_rows, people, Seed(seed))


def test_a_client_stands_for_the_user_of_its_examples_and_earlier_ones_are_prior() -> None:
    participants = participants_of(NAMED, KnownUserSettings(), (1, 4))
    assert participants.users == {client(0): "bob", client(1): "eva"}
    assert list(participants.known.prior_examples) == ["bob", "eva"]
    assert participants.known.prior_examples["bob"].inputs.flatten().tolist() == [4.0, 5.0]
    assert participants.known.prior_examples["eva"].inputs.flatten().tolist() == [16.0, 17.0]
    assert participants.known.holdout == {}
    assert participants.known.shadow_devices == {}
    assert participants.shadow_rows == ()
    assert not bool(participants.is_holdout.any())


def test_attributes_are_recorded_for_all_users_and_known_for_known_users() -> None:
    participants = participants_of(NAMED, KnownUserSettings(unseen=1, holdout=2), (0, 1, 2))
    hands = dict(zip(NAMED.user_names, NAMED.attributes["hand"], strict=True))
    assert participants.attributes == {"hand": hands}
    # "gus" has no training example.
    assert "gus" in participants.attributes["hand"]
    assert (
        participants.known.attributes["hand"].keys()
        == participants.known.all_prior_examples().keys()
    )
    assert len(participants.known.all_prior_examples()) == 4


def test_the_attacker_knows_nothing_of_unseen_users() -> None:
    unseen = set()
    for seed in range(12):
        participants = participants_of(NAMED, KnownUserSettings(unseen=1), (0, 1, 2, 3), seed)
        (one,) = (
            set(participants.users.values()) - participants.known.all_prior_examples().keys()
        )
        assert one not in participants.known.attributes["hand"]
        unseen.add(one)
    # Four users are equally likely: all 12 draws miss one of them once in eight times.
    assert len(unseen) >= 3


def test_holdout_users_take_no_part_and_all_their_examples_are_marked() -> None:
    chosen = set()
    for seed in range(6):
        participants = participants_of(NAMED, KnownUserSettings(holdout=2), (0, 1), seed)
        assert len(participants.known.holdout) == 2
        assert participants.known.holdout.keys() <= {"cem", "dee", "eva", "fil"}
        numbers = {NAMED.user_names.index(name) for name in participants.known.holdout}
        assert NAMED.users is not None
        assert set(NAMED.users[participants.is_holdout].tolist()) == numbers
        assert int(participants.is_holdout.sum()) == 8
        chosen |= participants.known.holdout.keys()
    assert len(chosen) > 2


def test_each_known_prior_is_a_shadow_device_including_holdout_users() -> None:
    people = KnownUserSettings(unseen=1, holdout=1, shadow_devices=True)
    participants = participants_of(NAMED, people, (0, 1, 2, 3))
    assert list(participants.known.shadow_devices) == [
        shadow_device(number) for number in range(4)
    ]
    assert (
        set(participants.known.shadow_devices.values())
        == participants.known.all_prior_examples().keys()
    )
    for device, rows in zip(
        participants.known.shadow_devices, participants.shadow_rows, strict=True
    ):
        examples = participants.known.all_prior_examples()[
            participants.known.shadow_devices[device]
        ]
        assert NAMED.train.inputs[rows].equal(examples.inputs)


def test_a_user_with_one_example_takes_part_but_is_unknown() -> None:
    lonely = user_dataset([0, 1, 1, 2, 2], [0] * 5)
    participants = participants_of(lonely, KnownUserSettings(shadow_devices=True), (0, 1, 2))
    assert set(participants.users.values()) == {"user 0", "user 1", "user 2"}
    assert set(participants.known.prior_examples) == {"user 1", "user 2"}
    assert len(participants.shadow_rows) == 2
    # Nor can it be a holdout user.
    with pytest.raises(PlanError, match="1 holdout users are needed, but 0 users with prior"):
        participants_of(lonely, KnownUserSettings(holdout=1), (1, 2))


def test_refuses_too_few_users() -> None:
    with pytest.raises(
        PlanError, match="of 3 clients 2 are unseen, and 1 of the others have prior"
    ):
        participants_of(SIX, KnownUserSettings(unseen=2), (0, 1, 2))
    with pytest.raises(
        PlanError, match="of 2 clients 0 are unseen, and 0 of the others have prior"
    ):
        participants_of(user_dataset([0, 1], [0, 0]), KnownUserSettings(), (0, 1))
    with pytest.raises(PlanError, match="3 holdout users are needed, but 2 users with prior"):
        participants_of(SIX, KnownUserSettings(holdout=3), (0, 1, 2, 3))


def test_a_users_embedding_is_the_mean_over_its_prior_records() -> None:
    # Records 0 and 1 of user 0 are prior, with three examples and one: each counts once.
    cut = user_dataset([0] * 6 + [1] * 2, [0] * 8, records=[0, 0, 0, 1, 2, 3, 4, 5])
    with_embeddings = replace(cut, embeddings=torch.arange(12.0).reshape(6, 2))
    participants = participants_of(with_embeddings, KnownUserSettings(), (0, 1))
    assert participants.known.embeddings["user 0"].tolist() == [
        1.0,
        2.0,
    ]  # of (0, 1) and (2, 3)
    assert participants.known.embeddings["user 1"].tolist() == [8.0, 9.0]
    # If each example is a record, row i is example i.
    plain = replace(SIX, embeddings=torch.arange(24.0)[:, None])
    assert participants_of(plain, KnownUserSettings(), (0, 1)).known.embeddings[
        "user 1"
    ].tolist() == [4.5]
    assert participants_of(SIX, KnownUserSettings(), (0, 1)).known.embeddings == {}


def test_a_profile_has_all_prior_examples_of_a_label() -> None:
    # Two of each user's four examples are prior.
    participants = participants_of(SIX, KnownUserSettings("profile"), (0, 1))
    free = torch.ones(24, dtype=torch.bool)
    split = split_prior_private(
        SIX, hash_contents(SIX), free, KnownUserSettings("profile"), 0, Seed(0)
    )
    prior = torch.cat(list(split.prior.values()))
    for label, name in enumerate("ab"):
        known = set(participants.known.prior_examples[name].inputs.flatten().long().tolist())
        assert known == {row for row in prior.tolist() if row % 2 == label}
    # Nobody has an example of the third label.
    assert set(participants.known.prior_examples) == {"a", "b"}
    assert participants.shadow_rows == ()


def test_the_profile_of_a_client_is_its_most_overrepresented_label() -> None:
    # Counts are (4, 1, 0), (4, 0, 1) and (4, 1, 1), in all 12, 2 and 2 of 16. Client 0 has a
    # fifth of b against a mean of 2 / 16: a lift of 1.6, above 0.8 / 0.75 for a. For client 1
    # it is the same with c. Client 2 has a lift of 1/6 over 1/8 = 1.33 for b and c: b is first.
    labels = [*(0, 0, 0, 0, 1), *(0, 0, 0, 0, 2), *(0, 0, 0, 0, 1, 2)]
    users = [0] * 5 + [1] * 5 + [2] * 6
    dataset = user_dataset(users, labels)
    free, profile = torch.ones(16, dtype=torch.bool), KnownUserSettings("profile")
    split = split_prior_private(dataset, hash_contents(dataset), free, profile, 0, Seed(0))
    client_rows = [torch.arange(5), torch.arange(5, 10), torch.arange(10, 16)]
    participants = identify_participants(
        dataset, split, client_rows, KnownUserSettings("profile"), Seed(0)
    )
    assert participants.users == {client(0): "b", client(1): "c", client(2): "b"}


def test_refuses_profiles_of_too_many_labels() -> None:
    words = Task((1,), tuple(f"word {number}" for number in range(MAX_PROFILES + 1)))
    many = user_dataset([0, 0, 1, 1], [0] * 4, task=words)
    with pytest.raises(PlanError, match="would make 101 profiles"):
        participants_of(many, KnownUserSettings("profile"), (0, 1))
    participants_of(many, KnownUserSettings("random"), (0, 1))


def test_a_permutation_keeps_all_examples_and_all_sizes() -> None:
    client_rows = [torch.arange(10), torch.arange(10, 50), torch.arange(50, 51)]
    permuted = permute_examples(client_rows, Seed(0))
    assert sorted(len(rows) for rows in permuted) == [1, 10, 40]
    assert sorted(torch.cat(permuted).tolist()) == list(range(51))
    (ten,) = (rows for rows in permuted if len(rows) == 10)
    # Ten of 51 rows contain two of client 0's ten rows on average.
    assert len(set(ten.tolist()) & set(range(10))) <= 6
    # Sizes are permuted: over ten seeds client 0 has each of the three sizes.
    first = {len(permute_examples(client_rows, Seed(seed))[0]) for seed in range(10)}
    assert first == {1, 10, 40}
    assert torch.cat(permute_examples(client_rows, Seed(0))).equal(torch.cat(permuted))
    assert not torch.cat(permute_examples(client_rows, Seed(1))).equal(torch.cat(permuted))
