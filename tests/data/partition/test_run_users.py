"""Participants' data, and what a server knows of their kind."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client, shadow_device
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.content_hash import hash_contents
from overheard.data.dataset import Dataset
from overheard.data.partition import prior_private_split
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.partition.prior_private_split import (
    MOST_LEFT_OUT,
    PriorPrivateSplit,
    split_prior_private,
)
from overheard.data.partition.run_users import (
    MAX_PROFILES,
    RunUsers,
    identify_users,
    permute_examples,
)
from tests.data.user_datasets import CLASSES, dataset_of, records, user_dataset

# Six users of four examples each, in the order of time: the first two of each are prior.
SIX = user_dataset([user for user in range(6) for _ in range(4)], [0, 1] * 12)


NAMED = replace(
    SIX,
    user_names=("ann", "bob", "cem", "dee", "eva", "fil", "gus"),
    attributes={"hand": ("left", "right", "left", "left", "right", "left", "right")},
)
"""The seventh user has no training example."""


def participants_of(
    dataset: Dataset, settings: KnownUserSettings, taking_part: Sequence[int], seed: int = 0
) -> RunUsers:
    """Participants if each client holds all private examples of one of these users."""
    free = torch.ones(len(dataset.train), dtype=torch.bool)
    split = split_prior_private(
        dataset, hash_contents(dataset), free, settings, 1000, Seed(seed)
    )
    assert dataset.users is not None
    client_rows = [
        (split.private & (dataset.users == user)).nonzero().flatten() for user in taking_part
    ]
    return identify_users(dataset, split, client_rows, settings, Seed(seed))


def test_a_client_stands_for_the_user_of_its_examples_and_earlier_ones_are_prior() -> None:
    run_users = participants_of(NAMED, KnownUserSettings(), (1, 4))
    assert run_users.users == {client(0): "bob", client(1): "eva"}
    assert list(run_users.known.prior_examples) == ["bob", "eva"]
    assert run_users.known.prior_examples["bob"].inputs.flatten().tolist() == [4.0, 5.0]
    assert run_users.known.prior_examples["eva"].inputs.flatten().tolist() == [16.0, 17.0]
    assert run_users.known.holdout == {}
    assert run_users.known.shadow_devices == {}
    assert run_users.shadow_rows == ()
    assert not bool(run_users.is_holdout.any())


def test_attributes_are_recorded_for_all_users_and_known_for_known_users() -> None:
    run_users = participants_of(NAMED, KnownUserSettings(unseen=1, holdout=2), (0, 1, 2))
    hands = dict(zip(NAMED.user_names, NAMED.attributes["hand"], strict=True))
    assert run_users.attributes == {"hand": hands}
    # "gus" has no training example.
    assert "gus" in run_users.attributes["hand"]
    assert (
        run_users.known.attributes["hand"].keys() == run_users.known.all_prior_examples().keys()
    )
    assert len(run_users.known.all_prior_examples()) == 4


def test_the_attacker_knows_nothing_of_unseen_users() -> None:
    unseen = set()
    for seed in range(12):
        run_users = participants_of(NAMED, KnownUserSettings(unseen=1), (0, 1, 2, 3), seed)
        (one,) = set(run_users.users.values()) - run_users.known.all_prior_examples().keys()
        assert one not in run_users.known.attributes["hand"]
        unseen.add(one)
    # Four users are equally likely: all 12 draws miss one of them once in eight times.
    assert len(unseen) >= 3


def test_holdout_users_take_no_part_and_all_their_examples_are_marked() -> None:
    chosen = set()
    for seed in range(6):
        run_users = participants_of(NAMED, KnownUserSettings(holdout=2), (0, 1), seed)
        assert len(run_users.known.holdout) == 2
        assert run_users.known.holdout.keys() <= {"cem", "dee", "eva", "fil"}
        numbers = {NAMED.user_names.index(name) for name in run_users.known.holdout}
        assert NAMED.users is not None
        assert set(NAMED.users[run_users.is_holdout].tolist()) == numbers
        assert int(run_users.is_holdout.sum()) == 8
        chosen |= run_users.known.holdout.keys()
    assert len(chosen) > 2


def test_each_known_prior_is_a_shadow_device_including_holdout_users() -> None:
    settings = KnownUserSettings(unseen=1, holdout=1, shadow_devices=True)
    run_users = participants_of(NAMED, settings, (0, 1, 2, 3))
    assert list(run_users.known.shadow_devices) == [
        shadow_device(number) for number in range(4)
    ]
    assert (
        set(run_users.known.shadow_devices.values())
        == run_users.known.all_prior_examples().keys()
    )
    for device, rows in zip(run_users.known.shadow_devices, run_users.shadow_rows, strict=True):
        examples = run_users.known.all_prior_examples()[run_users.known.shadow_devices[device]]
        assert NAMED.train.inputs[rows].equal(examples.inputs)


def test_a_user_with_one_example_takes_part_but_is_unknown() -> None:
    lonely = user_dataset([0, 1, 1, 2, 2], [0] * 5)
    run_users = participants_of(lonely, KnownUserSettings(shadow_devices=True), (0, 1, 2))
    assert set(run_users.users.values()) == {"user 0", "user 1", "user 2"}
    assert set(run_users.known.prior_examples) == {"user 1", "user 2"}
    assert len(run_users.shadow_rows) == 2
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
    run_users = participants_of(with_embeddings, KnownUserSettings(), (0, 1))
    assert run_users.known.embeddings["user 0"].tolist() == [
        1.0,
        2.0,
    ]  # of (0, 1) and (2, 3)
    assert run_users.known.embeddings["user 1"].tolist() == [8.0, 9.0]
    # If each example is a record, row i is example i.
    plain = replace(SIX, embeddings=torch.arange(24.0)[:, None])
    assert participants_of(plain, KnownUserSettings(), (0, 1)).known.embeddings[
        "user 1"
    ].tolist() == [4.5]
    assert participants_of(SIX, KnownUserSettings(), (0, 1)).known.embeddings == {}


def test_a_profile_has_all_prior_examples_of_a_label() -> None:
    # Two of each user's four examples are prior.
    run_users = participants_of(SIX, KnownUserSettings("profile"), (0, 1))
    free = torch.ones(24, dtype=torch.bool)
    split = split_prior_private(
        SIX, hash_contents(SIX), free, KnownUserSettings("profile"), 0, Seed(0)
    )
    prior = torch.cat(list(split.prior.values()))
    for label, name in enumerate("ab"):
        known = set(run_users.known.prior_examples[name].inputs.flatten().long().tolist())
        assert known == {row for row in prior.tolist() if row % 2 == label}
    # Nobody has an example of the third label.
    assert set(run_users.known.prior_examples) == {"a", "b"}
    assert run_users.shadow_rows == ()


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
    run_users = identify_users(
        dataset, split, client_rows, KnownUserSettings("profile"), Seed(0)
    )
    assert run_users.users == {client(0): "b", client(1): "c", client(2): "b"}


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


Records = list[tuple[int, int, int, int]]


PRIOR_KINDS: tuple[PriorKind, ...] = (
    "random",
    "chronological",
    "chronological_within_labels",
    "profile",
)


def split_of(dataset: Dataset, settings: KnownUserSettings, seed: int = 0) -> PriorPrivateSplit:
    available = torch.ones(len(dataset.train), dtype=torch.bool)
    contents = hash_contents(dataset)
    return split_prior_private(dataset, contents, available, settings, 1000, Seed(seed))


def users_of(dataset: Dataset) -> torch.Tensor:
    assert dataset.users is not None
    return dataset.users


def records_of(dataset: Dataset) -> torch.Tensor:
    assert dataset.records is not None
    return dataset.records


def times_of(dataset: Dataset) -> torch.Tensor:
    assert dataset.times is not None
    return dataset.times


@pytest.mark.slow
@given(
    drawn=records(),
    kind=st.sampled_from(PRIOR_KINDS),
    share=st.floats(0.05, 0.95),
    limit=st.sampled_from([None, 1, 3]),
    seed=st.integers(0, 99),
)
def test_no_example_and_no_record_is_both_prior_and_private(
    drawn: Records, kind: PriorKind, share: float, limit: int | None, seed: int
) -> None:
    dataset = dataset_of(drawn)
    split = split_of(dataset, KnownUserSettings(kind, share, limit), seed)
    users, numbers = users_of(dataset), records_of(dataset)
    held = set(numbers[split.private].tolist())
    for user, rows in split.prior.items():
        assert set(users[rows].tolist()) <= {user}
        assert not held & set(numbers[rows].tolist())
        if kind == "chronological":
            # Prior examples are ordered by the start of their records.
            of_user = users == user
            begins = [
                int(times_of(dataset)[of_user & (numbers == one)].min())
                for one in numbers[rows].tolist()
            ]
            assert begins == sorted(begins)
        all_records = set(numbers[users == user].tolist())
        # At least one record of each user stays private.
        assert all_records & held
        # Records are not cut.
        assert len(rows) == int(torch.isin(numbers, numbers[rows]).sum())
    assert split.prior.keys() == set(users.tolist())


@pytest.mark.slow
@given(drawn=records(), share=st.floats(0.05, 0.95))
def test_every_prior_record_is_earlier_than_every_private_one(
    drawn: Records, share: float
) -> None:
    dataset = dataset_of(drawn)
    split = split_of(dataset, KnownUserSettings("chronological", share))
    users, times, numbers = users_of(dataset), times_of(dataset), records_of(dataset)
    for user, rows in split.prior.items():
        of_user = split.private & (users == user)
        count = len(set(numbers[users == user].tolist()))
        known = len(set(numbers[rows].tolist()))
        # With two records or more, at least one is on each side.
        most = min(max(1, round(share * count)), count - 1)
        assert most - int(MOST_LEFT_OUT * most) <= known <= most
        if known:
            assert int(times[rows].max()) <= int(times[of_user].min())


@pytest.mark.slow
@given(
    drawn=records(),
    kind=st.sampled_from(PRIOR_KINDS),
    limit=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_a_limit_reduces_prior_records_and_changes_no_private_ones(
    drawn: Records, kind: PriorKind, limit: int, seed: int
) -> None:
    dataset = dataset_of(drawn)
    unlimited = split_of(dataset, KnownUserSettings(kind), seed)
    limited = split_of(dataset, KnownUserSettings(kind, records=limit), seed)
    assert limited.private.equal(unlimited.private)
    numbers = records_of(dataset)
    for user, rows in limited.prior.items():
        before = set(numbers[unlimited.prior[user]].tolist())
        after = set(numbers[rows].tolist())
        assert after <= before
        assert len(after) == min(limit, len(before))


def test_the_earlier_half_is_prior_and_a_limit_keeps_its_latest_records() -> None:
    # User 0 has five examples at the times 5, 1, 4, 2, 3; round(2.5) = 2 are prior.
    dataset = user_dataset([0] * 5 + [1] * 4, [0] * 9, times=[5, 1, 4, 2, 3, 9, 8, 7, 6])
    split = split_of(dataset, KnownUserSettings())
    assert {user: rows.tolist() for user, rows in split.prior.items()} == {0: [1, 3], 1: [8, 7]}
    assert split.private.nonzero().flatten().tolist() == [0, 2, 4, 5, 6]
    limited = split_of(dataset, KnownUserSettings(records=1))
    assert {user: rows.tolist() for user, rows in limited.prior.items()} == {0: [3], 1: [7]}


def test_within_labels_the_earlier_ones_of_each_label_are_prior() -> None:
    # Eight of label 0, then four of label 1.
    dataset = user_dataset([0] * 12, [0] * 8 + [1] * 4)
    settings = KnownUserSettings("chronological_within_labels")
    for seed in range(10):
        split = split_of(dataset, settings, seed)
        for label in (0, 1):
            prior = [row for row in split.prior[0].tolist() if (row >= 8) == label]
            private = split.private & (dataset.train.labels == label)
            assert prior == sorted(prior)
            assert max(prior, default=-1) < min(
                private.nonzero().flatten().tolist(), default=12
            )
    # Without strata by label, the latest three of the first six are taken.
    plain = split_of(dataset, KnownUserSettings(records=3))
    assert plain.prior[0].tolist() == [3, 4, 5]


@pytest.mark.parametrize("kind", ["random", "chronological", "chronological_within_labels"])
@pytest.mark.parametrize("is_all_free", [True, False])
def test_nothing_ties_the_prior_examples_of_equal_users_to_their_private_ones(
    kind: PriorKind, is_all_free: bool
) -> None:
    # 400 users of 40 rows with random labels and times; correlations have a deviation of 0.05.
    generator = Seed(5).generator()
    users = (torch.arange(16_000) % 400)[torch.randperm(16_000, generator=generator)]
    labels = torch.randint(2, (16_000,), generator=generator)
    dataset = user_dataset(users.tolist(), labels.tolist())
    free = torch.rand(16_000, generator=generator) < 0.8
    free = free | is_all_free
    contents, settings = hash_contents(dataset), KnownUserSettings(kind)
    split = split_prior_private(dataset, contents, free, settings, 0, Seed(0))
    is_prior = torch.zeros_like(free)
    is_prior[torch.cat(list(split.prior.values()))] = True
    sizes = torch.stack([users[part].bincount() for part in (is_prior, split.private)]).double()
    of_label = torch.stack(
        [
            users[part & (labels == 0)].bincount(minlength=400)
            for part in (is_prior, split.private)
        ]
    )
    assert all(len(one.unique()) > 3 for one in sizes)
    for numbers in (sizes, of_label / sizes):
        assert abs(float(torch.corrcoef(numbers)[0, 1])) < 0.2


def test_without_times_the_order_of_the_file_tells_nothing() -> None:
    dataset = replace(user_dataset([0] * 40, [0] * 40), times=None)
    split = split_of(dataset, KnownUserSettings())
    assert max(split.prior[0].tolist()) > int(split.private.nonzero().min())


def test_two_users_with_the_same_numbers_of_examples_draw_differently() -> None:
    split = split_of(user_dataset([0] * 30 + [1] * 30, [0] * 60), KnownUserSettings("random"))
    assert (split.prior[1] - 30).tolist() != split.prior[0].tolist()


def test_examples_that_are_not_free_are_neither_prior_nor_private() -> None:
    dataset = user_dataset([0] * 6, [0] * 6)
    available = torch.tensor([True, False, True, True, False, True])
    contents, settings = hash_contents(dataset), KnownUserSettings()
    split = split_prior_private(dataset, contents, available, settings, 0, Seed(0))
    assert split.prior[0].tolist() == [0, 2]
    assert split.private.nonzero().flatten().tolist() == [3, 5]


def test_no_prior_example_copies_a_private_or_a_test_example(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prior_private_split, "MOST_LEFT_OUT", 0.0)
    # Without copies, rows 0 to 3 and 8 to 11 are prior, and 4 to 7 and 12 to 15 are private.
    # Row 1 copies row 5 of the same user, row 9 copies row 6 of the other user, and row 10
    # copies a test example. Rows 0 and 8 are copies only of each other.
    inputs = [50.0, 1.0, 2.0, 3.0, 4.0, 1.0, 6.0, 7.0]
    inputs += [50.0, 6.0, 99.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    dataset = user_dataset([0] * 8 + [1] * 8, [0] * 16, inputs=inputs, test=[99.0])
    split = split_of(dataset, KnownUserSettings())
    assert {user: rows.tolist() for user, rows in split.prior.items()} == {
        0: [0, 2, 3],
        1: [8, 11],
    }
    # Copies are left out: private examples are the same as without copies.
    assert split.private.nonzero().flatten().tolist() == [4, 5, 6, 7, 12, 13, 14, 15]
    # A copy does not count towards the limit.
    limited = split_of(dataset, KnownUserSettings(records=3))
    assert limited.prior[0].tolist() == [0, 2, 3]


@pytest.mark.slow
@given(
    labels=st.lists(st.integers(0, CLASSES - 1), min_size=40, max_size=120),
    kind=st.sampled_from(PRIOR_KINDS[:3]),
    share=st.sampled_from([0.3, 0.5, 0.7]),
    wanted=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_label_matched_users_have_equal_counts_of_every_label(
    labels: list[int], kind: PriorKind, share: float, wanted: int, seed: int
) -> None:
    dataset = user_dataset([number % 3 for number in range(len(labels))], labels)
    try:
        split = split_of(dataset, KnownUserSettings(kind, share, per_label=wanted), seed)
    except PlanError as error:
        assert "lower per_label" in str(error)  # noqa: PT017 - whether it is raised varies
        return
    assert len(split.prior) >= 2
    matched = None
    for user, rows in split.prior.items():
        private = split.private & (users_of(dataset) == user)
        known = dataset.train.take(rows).label_counts(CLASSES)
        held = dataset.train.take(private).label_counts(CLASSES)
        assert set(known.tolist()) <= {0, wanted}
        assert known.equal(held)
        assert matched is None or matched.equal(known)
        matched = known
        assert not bool(private[rows].any())
    # Users who are left out have no private examples either.
    others = ~torch.isin(users_of(dataset), torch.tensor(list(split.prior)))
    assert not bool((split.private & others).any())


def test_matched_users_keep_the_prior_and_private_examples_nearest_in_time() -> None:
    # Rows 0..3 and 4..7 of user 0, 8..11 and 12..15 of user 1, labels in turn.
    dataset = user_dataset([0] * 8 + [1] * 8, [0, 1] * 8)
    split = split_of(dataset, KnownUserSettings(per_label=1))
    assert {user: rows.tolist() for user, rows in split.prior.items()} == {
        0: [2, 3],
        1: [10, 11],
    }
    assert split.private.nonzero().flatten().tolist() == [4, 5, 12, 13]


def test_rare_labels_are_left_out_and_then_users_without_all_labels() -> None:
    # Users 0 to 2 have four examples of label 0, users 0 and 1 four of label 1, and user 3 four
    # of label 2. Of four users, three have enough of label 0, two of label 1, one of label 2.
    # So labels 0 and 1 are kept, and users 0 and 1 have both.
    users = [0] * 8 + [1] * 8 + [2] * 4 + [3] * 4
    labels = ([0] * 4 + [1] * 4) * 2 + [0] * 4 + [2] * 4
    split = split_of(
        user_dataset(users, labels),
        KnownUserSettings("chronological_within_labels", per_label=2),
    )
    assert sorted(split.prior) == [0, 1]
    assert split.prior[0].tolist() == [0, 4, 1, 5]
    # In chronological order, one label would be all prior and the other all private.
    with pytest.raises(PlanError, match="choose prior = 'random' or 'chron"):
        split_of(user_dataset(users, labels), KnownUserSettings(per_label=2))


def test_refuses_a_data_set_without_users() -> None:
    nameless = Dataset(
        Examples(torch.zeros(2, 1), torch.tensor([0, 1])),
        Examples(torch.ones(1, 1), torch.tensor([0])),
        Task((1,), ("a", "b")),
    )
    with pytest.raises(PlanError, match="names no users: choose one that does"):
        split_of(nameless, KnownUserSettings())
