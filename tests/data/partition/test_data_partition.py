from dataclasses import replace
from itertools import combinations
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.content_hash import content_hashes
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import DataPartition, draw_partition
from overheard.data.partition.first_round import SplitSettings
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import DataShift, Schedule
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity

CLASSES = 4


def examples(first: int, number: int) -> Examples:
    """Return examples whose single input is their own number, so that all differ."""
    inputs = torch.arange(first, first + number, dtype=torch.float32)[:, None]
    return Examples(inputs, torch.arange(number) % CLASSES)


def dataset(train: Examples | None = None) -> Dataset:
    held = examples(0, 1200) if train is None else train
    return Dataset(
        held,
        examples(5000, 100),
        Task((1,), ("a", "b", "c", "d")),
        torch.arange(len(held)) // CLASSES % 6,
    )


def draw_test_partition(
    split: Split,
    *,
    clients: int = 3,
    sizes: tuple[int, int] = (20, 20),
    auxiliary: AuxiliarySize | None = None,
    schedule: Schedule | None = None,
    test: int | None = None,
    seed: int = 0,
    data: Dataset | None = None,
    people: KnownUserSettings | None = None,
    is_exchanged: bool = False,
    background: int | None = None,
    candidates: CandidateSettings | None = None,
) -> DataPartition:
    return draw_partition(
        dataset() if data is None else data,
        SplitSettings(split, sizes),
        clients=clients,
        auxiliary=AuxiliarySize(per_class=5) if auxiliary is None else auxiliary,
        test=test,
        schedule=Schedule(rounds=1) if schedule is None else schedule,
        seed=Seed(seed),
        known_users=people,
        is_permuted=is_exchanged,
        background=background,
        candidates=candidates,
    )


any_split = st.sampled_from(
    [Iid(), Iid(0.3), Dirichlet(0.1), Dirichlet(5.0), Quantity(2), ByUser()]
)


@given(
    split=any_split,
    clients=st.integers(1, 5),
    smallest=st.integers(4, 12),
    spread=st.integers(0, 12),
    per_class=st.integers(0, 10),
    refresh_every=st.sampled_from([None, 1, 2]),
    seed=st.integers(0, 999),
)
def test_no_example_is_ever_held_by_two_parties(
    split: Split,
    clients: int,
    smallest: int,
    spread: int,
    per_class: int,
    refresh_every: int | None,
    seed: int,
) -> None:
    partition = draw_test_partition(
        split,
        clients=clients,
        sizes=(smallest, smallest + spread),
        auxiliary=AuxiliarySize(per_class=per_class),
        schedule=Schedule(3, refresh_every),
        seed=seed,
    )
    distinct_rows = {id(rows): rows for held in partition.rows for rows in held}
    rows = torch.cat(list(distinct_rows.values()))
    assert len(rows.unique()) == len(rows)
    # An input is the number of its example, so inputs identify examples.
    auxiliary = partition.auxiliary.inputs.flatten().long().tolist()
    assert len(auxiliary) == CLASSES * per_class
    assert not set(auxiliary) & set(rows.tolist())
    assert not set(partition.test.inputs.flatten().long().tolist()) & set(range(1200))
    assert all(smallest <= len(held) <= smallest + spread for held in partition.rows[0])


def test_the_partition_depends_on_the_seed() -> None:
    first, again, other = (draw_test_partition(Dirichlet(), seed=seed) for seed in (1, 1, 2))
    assert all(a.equal(b) for a, b in zip(first.rows[0], again.rows[0], strict=True))
    assert first.auxiliary.inputs.equal(again.auxiliary.inputs)
    assert not first.auxiliary.inputs.equal(other.auxiliary.inputs)
    assert not first.rows[0][0].equal(other.rows[0][0])


def test_fresh_examples_have_the_same_label_counts() -> None:
    partition = draw_test_partition(Dirichlet(0.3), schedule=Schedule(5, refresh_every=2))
    counts = [
        partition.client_examples(0, number).label_counts(CLASSES).tolist()
        for number in range(5)
    ]
    assert counts == [counts[0]] * 5
    held = [frozenset(partition.rows[number][0].tolist()) for number in range(5)]
    assert held[0] == held[1]
    assert held[2] == held[3]
    assert len(held[0] | held[2] | held[4]) == 60


def test_a_shift_changes_one_client_from_its_round_on_at_constant_size() -> None:
    shift = DataShift(1, 2, (0.4, 0.1, 0.4, 0.1))
    partition = draw_test_partition(Iid(0.0), schedule=Schedule(4, shifts=(shift,)))
    counts = [
        partition.client_examples(1, number).label_counts(CLASSES).tolist()
        for number in range(4)
    ]
    # 20 * (.4, .1, .4, .1) from round 2 on; 5 of each before.
    assert counts == [[5, 5, 5, 5]] * 2 + [[8, 2, 8, 2]] * 2
    assert not set(partition.rows[1][1].tolist()) & set(partition.rows[2][1].tolist())
    assert partition.rows[0][0] is partition.rows[3][0]


def test_a_shift_lasts_through_later_refreshes() -> None:
    shift = DataShift(0, 1, (1.0, 0.0, 0.0, 0.0))
    partition = draw_test_partition(
        Iid(), schedule=Schedule(5, refresh_every=2, shifts=(shift,))
    )
    assert [
        int(partition.client_examples(0, n).label_counts(CLASSES)[0]) for n in range(1, 5)
    ] == [20] * 4


def test_a_client_that_is_a_user_stays_that_user_through_refreshes_and_shifts() -> None:
    shift = DataShift(2, 1, (0.7, 0.1, 0.1, 0.1))
    partition = draw_test_partition(
        ByUser(), schedule=Schedule(4, refresh_every=2, shifts=(shift,))
    )
    users = torch.arange(1200) // CLASSES % 6
    for client_number in range(3):
        held = torch.cat([partition.rows[number][client_number] for number in range(4)])
        assert len(users[held].unique()) == 1
    assert partition.client_examples(2, 1).label_counts(CLASSES).tolist() == [14, 2, 2, 2]


def test_refuses_refreshes_that_use_up_the_pool() -> None:
    # 3 clients * 20 examples * 25 chunks = 1500, of 1200 - 20.
    with pytest.raises(PlanError, match="are left"):
        draw_test_partition(Iid(), schedule=Schedule(25, refresh_every=1))


def test_no_auxiliary_example_has_a_copy() -> None:
    # Of 200 training examples, 92 are copies of others.
    inputs = torch.cat([torch.arange(100.0), torch.arange(92.0), torch.arange(900.0, 908.0)])
    data = dataset(Examples(inputs[:, None], torch.arange(200) % CLASSES))
    # 92..99 and 900..907 occur once: 16 examples, four of each label.
    partition = draw_test_partition(
        Iid(), data=data, auxiliary=AuxiliarySize(per_class=4), sizes=(10, 10)
    )
    assert sorted(partition.auxiliary.inputs.flatten().tolist()) == [
        *range(92, 100),
        *range(900, 908),
    ]
    with pytest.raises(PlanError, match=r"but 4 are left: 184 of 200 .* remove copies"):
        draw_test_partition(
            Iid(), data=data, auxiliary=AuxiliarySize(per_class=5), sizes=(10, 10)
        )


def test_no_candidate_has_a_copy() -> None:
    # Of 1,200 training examples, 300 have a copy, and 100 more have a copy in the test part.
    inputs = torch.arange(1200.0)
    inputs[900:] = inputs[:300]
    inputs[300:400] = torch.arange(5000.0, 5100.0)
    train = Examples(inputs[:, None], torch.arange(1200) % CLASSES)
    partition = draw_test_partition(
        Iid(),
        clients=3,
        sizes=(150, 150),
        data=dataset(train),
        candidates=CandidateSettings(150, 200),
    )
    assert partition.candidates is not None
    members = {place for own in partition.members.values() for place in own}
    outsiders = [n for n in range(len(partition.candidates)) if n not in members]
    assert len(outsiders) == 200
    held = torch.cat([partition.client_examples(number, 0).inputs for number in range(3)])
    assert not torch.isin(partition.candidates.inputs[outsiders], held).any()
    # No other client and no test example has the content of a member.
    everything = torch.cat([train.inputs, partition.test.inputs]).flatten().tolist()
    assert all(
        everything.count(one) == 1 for one in partition.candidates.inputs.flatten().tolist()
    )


@given(
    split=any_split,
    canaries=st.sampled_from(["labelled", "mislabelled"]),
    size=st.integers(4, 20),
    seed=st.integers(0, 999),
)
def test_canaries_are_added_to_the_split_and_do_not_depend_on_it(
    split: Split, canaries: Literal["labelled", "mislabelled"], size: int, seed: int
) -> None:
    candidates = CandidateSettings(5, 20, canaries)
    partition = draw_test_partition(split, sizes=(size, size), seed=seed, candidates=candidates)
    candidate_records = partition.candidates
    assert candidate_records is not None
    assert partition.canary_odds == 5 / 20
    same = draw_test_partition(Iid(), sizes=(7, 7), seed=seed, candidates=candidates)
    assert same.members == partition.members
    assert same.candidates is not None
    assert torch.equal(same.candidates.inputs, candidate_records.inputs)
    assert torch.equal(same.candidates.labels, candidate_records.labels)
    assert torch.equal(same.auxiliary.inputs, partition.auxiliary.inputs)
    used = partition.auxiliary.inputs.flatten().tolist()
    for number in range(3):
        places, examples_held = (
            partition.members[client(number)],
            partition.client_examples(number, 0),
        )
        assert len(examples_held) == size + len(places)
        # The last rows of each client are its canaries, with the labels of the candidates.
        assert torch.equal(examples_held.inputs[size:], candidate_records.inputs[list(places)])
        assert torch.equal(examples_held.labels[size:], candidate_records.labels[list(places)])
        used += examples_held.inputs.flatten().tolist()
    members = {place for places in partition.members.values() for place in places}
    held_out = [n for n in range(len(candidate_records)) if n not in members]
    used += candidate_records.inputs[held_out].flatten().tolist()
    assert len(set(used)) == len(used)
    own_labels = dataset().train.labels[candidate_records.inputs.flatten().long()]
    is_right = candidate_records.labels == own_labels
    assert bool(is_right.all()) if canaries == "labelled" else not bool(is_right.any())


def test_no_client_holds_another_example_of_a_canarys_record() -> None:
    train = dataset().train
    records = torch.arange(len(train)) // 3
    partition = draw_test_partition(
        Iid(),
        sizes=(60, 60),
        data=replace(dataset(), records=records),
        candidates=CandidateSettings(5, 20, "labelled"),
    )
    assert partition.candidates is not None
    canary_records = records[partition.candidates.inputs.flatten().long()]
    for number in range(3):
        canary_count = len(partition.members[client(number)])
        other_rows = (
            partition.client_examples(number, 0)
            .inputs[: 60 if canary_count == 0 else -canary_count]
            .flatten()
            .long()
        )
        assert not torch.isin(records[other_rows], canary_records).any()


def test_refuses_canaries_combined_with_people() -> None:
    with pytest.raises(PlanError, match="leave out canaries or people"):
        draw_test_partition(
            ByUser(), people=KnownUserSettings(), candidates=CandidateSettings(2, 5, "labelled")
        )


def test_no_auxiliary_example_copies_a_test_example() -> None:
    # Training inputs 0..99 and 5000..5019, the latter 20 being test inputs too.
    inputs = torch.cat([torch.arange(100.0), torch.arange(5000.0, 5020.0)])
    data = dataset(Examples(inputs[:, None], torch.arange(120) % CLASSES))
    partition = draw_test_partition(
        Iid(), data=data, auxiliary=AuxiliarySize(total=80), sizes=(8, 8)
    )
    keys = content_hashes(data.test.inputs)
    assert not torch.isin(content_hashes(partition.auxiliary.inputs), keys).any()


def test_copies_are_searched_again_for_another_test_part() -> None:
    # The first test holds copies of the training examples 0 to 99, the second of 100 to 199.
    train, task = examples(0, 200), Task((1,), ("a", "b", "c", "d"))
    for first, free in ((0, range(100, 200)), (100, range(100)), (0, range(100, 200))):
        data = Dataset(train, examples(first, 100), task)
        given = draw_test_partition(
            Iid(), clients=1, auxiliary=AuxiliarySize(per_class=25), data=data
        ).auxiliary
        assert sorted(given.inputs.flatten().tolist()) == list(free)


def test_a_total_of_auxiliary_examples_follows_the_shares_of_the_pool() -> None:
    labels = torch.tensor([0] * 300 + [1] * 100)
    train = Examples(torch.arange(400.0)[:, None], labels)
    partition = draw_test_partition(
        Dirichlet(), data=dataset(train), auxiliary=AuxiliarySize(total=40)
    )
    assert partition.auxiliary.label_counts(CLASSES).tolist() == [30, 10, 0, 0]


@pytest.mark.parametrize("test", [0, 101])
def test_refuses_an_impossible_number_of_test_examples(test: int) -> None:
    with pytest.raises(PlanError, match="the number of test examples"):
        draw_test_partition(Iid(), test=test)


def test_refuses_impossible_clients() -> None:
    with pytest.raises(PlanError, match="smallest first"):
        draw_test_partition(Iid(), sizes=(5, 4))
    with pytest.raises(PlanError, match="client 3 shifts, but there are 3 clients"):
        draw_test_partition(Iid(), schedule=Schedule(3, shifts=(DataShift(3, 1),)))
    with pytest.raises(PlanError, match="2 shares, but the task has 4"):
        draw_test_partition(Iid(), schedule=Schedule(3, shifts=(DataShift(0, 1, (0.5, 0.5)),)))
    with pytest.raises(PlanError, match="not both"):
        AuxiliarySize(per_class=1, total=2)


EVERY_KIND_OF_USER = KnownUserSettings(unseen=1, holdout=1, shadow_devices=True)
"""For six users of 200 examples: 100 of each are prior, less the auxiliary ones."""


def numbers_of(examples: Examples) -> set[int]:
    """Return the numbers of these examples, which are their inputs."""
    return set(examples.inputs.flatten().long().tolist())


@given(
    prior=st.sampled_from(["random", "chronological", "chronological_within_labels"]),
    is_exchanged=st.booleans(),
    refresh_every=st.sampled_from([None, 1]),
    background=st.sampled_from([None, 30]),
    per_class=st.integers(0, 5),
    seed=st.integers(0, 999),
)
def test_examples_of_attacker_clients_and_public_are_disjoint(
    prior: PriorKind,
    is_exchanged: bool,
    refresh_every: int | None,
    background: int | None,
    per_class: int,
    seed: int,
) -> None:
    partition = draw_test_partition(
        ByUser(),
        sizes=(4, 7),
        auxiliary=AuxiliarySize(per_class=per_class),
        schedule=Schedule(3, refresh_every),
        people=replace(EVERY_KIND_OF_USER, prior=prior),
        is_exchanged=is_exchanged,
        background=background,
        seed=seed,
    )
    assert partition.run_users is not None
    known = set().union(
        *map(numbers_of, partition.run_users.known.all_prior_examples().values())
    )
    held = {int(row) for at in partition.rows for rows in at[:3] for row in rows}
    public = set() if partition.background is None else numbers_of(partition.background)
    auxiliary = numbers_of(partition.auxiliary)
    sets = (known, held, public, auxiliary, numbers_of(partition.test))
    assert all(not one & other for one, other in combinations(sets, 2))
    assert len(public) == (background or 0)
    # Examples of holdout users are not public either.
    users = users_of_dataset()
    (absent,) = (int(name.removeprefix("user ")) for name in partition.run_users.known.holdout)
    assert absent not in set(users[list(held | public)].tolist())


def users_of_dataset() -> torch.Tensor:
    users = dataset().users
    assert users is not None
    return users


def test_shadow_devices_follow_the_clients_and_hold_the_priors() -> None:
    schedule = Schedule(3, refresh_every=1)
    partition = draw_test_partition(
        ByUser(), sizes=(8, 8), schedule=schedule, people=EVERY_KIND_OF_USER
    )
    assert partition.run_users is not None
    priors = list(partition.run_users.known.all_prior_examples().values())
    assert len(priors) == 3 - 1 + 1
    for held in partition.rows:
        assert len(held) == 3 + len(priors)
        for rows, prior in zip(held[3:], priors, strict=True):
            assert partition.pool.inputs[rows].equal(prior.inputs)


def test_a_client_holds_the_private_examples_of_the_user_that_it_stands_for() -> None:
    partition = draw_test_partition(
        ByUser(), people=KnownUserSettings(), auxiliary=AuxiliarySize()
    )
    assert partition.run_users is not None
    users = users_of_dataset()
    for number in range(3):
        name = partition.run_users.users[client(number)]
        (user,) = set(users[partition.rows[0][number]].tolist())
        assert name == f"user {user}"
        prior = partition.run_users.known.prior_examples[name]
        assert set(users[list(numbers_of(prior))].tolist()) == {user}


def test_the_permutation_control_permutes_client_examples_and_nothing_else() -> None:
    run, control = (
        draw_test_partition(
            ByUser(), sizes=(20, 60), people=EVERY_KIND_OF_USER, is_exchanged=exchanged
        )
        for exchanged in (False, True)
    )
    held, permuted = run.rows[0][:3], control.rows[0][:3]
    assert sorted(map(len, held)) == sorted(map(len, permuted))
    assert sorted(torch.cat(held).tolist()) == sorted(torch.cat(permuted).tolist())
    users = users_of_dataset()
    assert all(len(users[rows].unique()) == 1 for rows in held)
    assert all(len(users[rows].unique()) > 1 for rows in permuted)
    assert run.run_users is not None
    assert control.run_users is not None
    assert control.run_users.users == run.run_users.users
    assert (
        control.run_users.known.prior_examples.keys()
        == run.run_users.known.prior_examples.keys()
    )
    for name, prior in run.run_users.known.all_prior_examples().items():
        assert control.run_users.known.all_prior_examples()[name].inputs.equal(prior.inputs)
    for one, other in zip(run.rows[0][3:], control.rows[0][3:], strict=True):
        assert one.equal(other)
    assert control.auxiliary.inputs.equal(run.auxiliary.inputs)


def test_the_permutation_control_stays_permuted_after_refreshes() -> None:
    schedule = Schedule(3, refresh_every=1)
    partition = draw_test_partition(
        ByUser(), people=KnownUserSettings(), sizes=(8, 8), is_exchanged=True, schedule=schedule
    )
    users = users_of_dataset()
    for held in partition.rows:
        # Each refresh brings examples of the same users and labels.
        kinds = [(4 * users[rows] + partition.pool.labels[rows]).bincount() for rows in held]
        before = [(4 * users[rows] + partition.pool.labels[rows]).bincount() for rows in
                  partition.rows[0]]  # fmt: skip
        assert all(one.equal(other) for one, other in zip(kinds, before, strict=True))
    assert not set(partition.rows[0][0].tolist()) & set(partition.rows[1][0].tolist())


def test_refuses_shadow_devices_with_distorted_inputs() -> None:
    schedule = Schedule(2, shifts=(DataShift(0, 1, distortion=0.5),))
    with pytest.raises(PlanError, match="leave out shadow_devices or the shift by distortion"):
        draw_test_partition(ByUser(), people=EVERY_KIND_OF_USER, schedule=schedule)
    partition = draw_test_partition(ByUser(), people=KnownUserSettings(), schedule=schedule)
    assert len(partition.rows[1]) == 3


def test_matched_users_hold_all_their_private_examples_or_are_refused() -> None:
    # 10 private and 10 prior examples of every label: 40 of each user.
    settings = KnownUserSettings("chronological_within_labels", per_label=10)
    partition = draw_test_partition(
        ByUser(), people=settings, sizes=(40, 60), auxiliary=AuxiliarySize()
    )
    assert partition.run_users is not None
    assert [
        partition.client_examples(number, 0).label_counts(CLASSES).tolist()
        for number in range(3)
    ] == [[10] * 4] * 3
    for prior in partition.run_users.known.prior_examples.values():
        assert prior.label_counts(CLASSES).tolist() == [10] * 4
    with pytest.raises(PlanError, match="have 40 private examples each"):
        draw_test_partition(
            ByUser(), people=settings, sizes=(39, 60), auxiliary=AuxiliarySize()
        )


def test_public_examples_come_from_users_who_take_no_part() -> None:
    partition = draw_test_partition(ByUser(), background=50)
    assert partition.background is not None
    assert len(numbers_of(partition.background)) == 50
    users = users_of_dataset()
    busy = {int(users[rows[0]]) for rows in partition.rows[0]}
    assert not busy & set(users[list(numbers_of(partition.background))].tolist())
    # Three of six users take part: the others have 600 examples, less the auxiliary ones.
    with pytest.raises(PlanError, match="601 public examples are needed, but users who take"):
        draw_test_partition(ByUser(), background=601)
    # Users without a prior have 200 public examples each; one of three is a holdout user.
    bare = AuxiliarySize()
    known = draw_test_partition(
        ByUser(), background=400, people=KnownUserSettings(holdout=1), auxiliary=bare
    )
    assert known.background is not None
    assert len(numbers_of(known.background)) == 400
    with pytest.raises(PlanError, match="users who take no part have 400"):
        draw_test_partition(
            ByUser(), background=401, people=KnownUserSettings(holdout=1), auxiliary=bare
        )


def test_public_examples_of_the_data_set_itself_come_first() -> None:
    own = replace(dataset(), background=examples(9000, 40))
    assert numbers_of(draw_test_partition(ByUser(), data=own).background or own.test) == {
        *range(9000, 9040)
    }
    selection = draw_test_partition(ByUser(), data=own, background=25).background
    assert selection is not None
    assert len(numbers_of(selection)) == 25
    assert numbers_of(selection) < {*range(9000, 9040)}
    again = draw_test_partition(
        ByUser(), data=own, background=25, is_exchanged=True, people=KnownUserSettings()
    )
    assert again.background is not None
    assert again.background.inputs.equal(selection.inputs)


def test_refuses_public_examples_that_have_no_source() -> None:
    nameless = replace(dataset(), users=None)
    assert draw_test_partition(Iid(), data=nameless).background is None
    with pytest.raises(PlanError, match="no public examples, and names no users"):
        draw_test_partition(Iid(), data=nameless, background=5)


def test_no_client_holds_an_example_of_a_record_of_the_attacker() -> None:
    # Records of five examples each, all of one user.
    records = torch.arange(1200) // 5
    cut = replace(dataset(), users=records % 6, records=records)
    partition = draw_test_partition(
        Iid(), data=cut, sizes=(100, 100), auxiliary=AuxiliarySize(total=30)
    )
    known = set(records[list(numbers_of(partition.auxiliary))].tolist())
    assert not known & set(records[torch.cat(partition.rows[0])].tolist())
    # 30 auxiliary examples come from more than 24 of 240 records: too few examples are left.
    with pytest.raises(PlanError):
        draw_test_partition(
            Iid(), data=cut, sizes=(360, 360), auxiliary=AuxiliarySize(total=30)
        )
