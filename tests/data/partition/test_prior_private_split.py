"""Prior and private examples of a user are disjoint."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.content_hash import hash_contents
from overheard.data.dataset import Dataset
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.partition.prior_private_split import PriorPrivateSplit, split_prior_private
from tests.data.user_datasets import CLASSES, dataset_of, records, user_dataset

Records = list[tuple[int, int, int, int]]

PRIOR_KINDS: tuple[PriorKind, ...] = (
    "random",
    "chronological",
    "chronological_within_labels",
    "profile",
)


def split_of(dataset: Dataset, people: KnownUserSettings, seed: int = 0) -> PriorPrivateSplit:
    available = torch.ones(len(dataset.train), dtype=torch.bool)
    contents = hash_contents(dataset)
    return split_prior_private(dataset, contents, available, people, 1000, Seed(seed))


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
        assert known == min(max(1, round(share * count)), count - 1)
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
    # Eight of label 0, then four of label 1: four and two are prior.
    dataset = user_dataset([0] * 12, [0] * 8 + [1] * 4)
    split = split_of(dataset, KnownUserSettings("chronological_within_labels"))
    # By relative position within the label: 0, 1/4, 1/2, 3/4 and 0, 1/2.
    assert split.prior[0].tolist() == [0, 8, 1, 2, 9, 3]
    # Three records are the latest two of four and the latest one of two.
    limited = split_of(dataset, KnownUserSettings("chronological_within_labels", records=3))
    assert limited.prior[0].tolist() == [2, 9, 3]
    # Without strata by label, the latest three are taken.
    plain = split_of(dataset, KnownUserSettings(records=3))
    assert plain.prior[0].tolist() == [3, 4, 5]


def test_two_users_with_the_same_numbers_of_examples_draw_differently() -> None:
    split = split_of(user_dataset([0] * 30 + [1] * 30, [0] * 60), KnownUserSettings("random"))
    assert (split.prior[1] - 30).tolist() != split.prior[0].tolist()


def test_examples_that_are_not_free_are_neither_prior_nor_private() -> None:
    dataset = user_dataset([0] * 6, [0] * 6)
    available = torch.tensor([True, False, True, True, False, True])
    contents, people = hash_contents(dataset), KnownUserSettings()
    split = split_prior_private(dataset, contents, available, people, 0, Seed(0))
    assert split.prior[0].tolist() == [0, 2]
    assert split.private.nonzero().flatten().tolist() == [3, 5]


def test_no_prior_example_copies_a_private_or_a_test_example() -> None:
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
