from dataclasses import replace
from itertools import combinations
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import Candidates
from overheard.data.partition.composition import ratio_shares
from overheard.data.partition.deal import Auxiliary, Deal, SharedOut, deal
from overheard.data.partition.people import People, PriorKind
from overheard.data.partition.schedule import DataShift, Schedule
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity
from overheard.data.splits.shares import Shares

CLASSES = 4


def examples(first: int, number: int) -> Examples:
    """Examples whose single input is their own number: no two alike."""
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


def dealt(
    split: Split,
    *,
    clients: int = 3,
    sizes: tuple[int, int] = (20, 20),
    auxiliary: Auxiliary | None = None,
    schedule: Schedule | None = None,
    test: int | None = None,
    seed: int = 0,
    data: Dataset | None = None,
    people: People | None = None,
    is_exchanged: bool = False,
    background: int | None = None,
    candidates: Candidates | None = None,
) -> Deal:
    return deal(
        dataset() if data is None else data,
        SharedOut(split, sizes),
        clients=clients,
        auxiliary=Auxiliary(per_class=5) if auxiliary is None else auxiliary,
        test=test,
        schedule=Schedule(rounds=1) if schedule is None else schedule,
        seed=Seed(seed),
        people=people,
        is_exchanged=is_exchanged,
        background=background,
        candidates=candidates,
    )


splits = st.sampled_from(
    [Iid(), Iid(0.3), Dirichlet(0.1), Dirichlet(5.0), Quantity(2), ByUser()]
)


@settings(max_examples=40, deadline=None)
@given(
    split=splits,
    clients=st.integers(1, 5),
    smallest=st.integers(4, 12),
    spread=st.integers(0, 12),
    per_class=st.integers(0, 10),
    refresh_every=st.sampled_from([None, 1, 2]),
    seed=st.integers(0, 999),
)
def test_no_example_is_ever_in_two_hands(
    split: Split,
    clients: int,
    smallest: int,
    spread: int,
    per_class: int,
    refresh_every: int | None,
    seed: int,
) -> None:
    hands = dealt(
        split,
        clients=clients,
        sizes=(smallest, smallest + spread),
        auxiliary=Auxiliary(per_class=per_class),
        schedule=Schedule(3, refresh_every),
        seed=seed,
    )
    chunks = {id(rows): rows for held in hands.rows for rows in held}
    rows = torch.cat(list(chunks.values()))
    assert len(rows.unique()) == len(rows)
    # An input is its example's own number, so the numbers tell who holds what.
    auxiliary = hands.auxiliary.inputs.flatten().long().tolist()
    assert len(auxiliary) == CLASSES * per_class
    assert not set(auxiliary) & set(rows.tolist())
    assert not set(hands.test.inputs.flatten().long().tolist()) & set(range(1200))
    assert all(smallest <= len(held) <= smallest + spread for held in hands.rows[0])


def test_the_same_seed_deals_the_same_and_another_otherwise() -> None:
    first, again, other = (dealt(Dirichlet(), seed=seed) for seed in (1, 1, 2))
    assert all(a.equal(b) for a, b in zip(first.rows[0], again.rows[0], strict=True))
    assert first.auxiliary.inputs.equal(again.auxiliary.inputs)
    assert not first.auxiliary.inputs.equal(other.auxiliary.inputs)
    assert not first.rows[0][0].equal(other.rows[0][0])


def test_a_client_holds_the_examples_of_its_rows() -> None:
    hands = dealt(Iid())
    assert hands.held(1, 0).inputs.flatten().long().equal(hands.rows[0][1])


def test_fresh_examples_have_the_old_composition() -> None:
    hands = dealt(Dirichlet(0.3), schedule=Schedule(5, refresh_every=2))
    counts = [hands.held(0, number).counts(CLASSES).tolist() for number in range(5)]
    assert counts == [counts[0]] * 5
    held = [frozenset(hands.rows[number][0].tolist()) for number in range(5)]
    assert held[0] == held[1]
    assert held[2] == held[3]
    assert len(held[0] | held[2] | held[4]) == 60


def test_a_shift_changes_one_client_from_its_round_on_at_constant_size() -> None:
    shift = DataShift(1, 2, ratio_shares(CLASSES, (0, 2), 0.8))
    hands = dealt(Iid(0.0), schedule=Schedule(4, shifts=(shift,)))
    counts = [hands.held(1, number).counts(CLASSES).tolist() for number in range(4)]
    # 20 * (.4, .1, .4, .1) from round 2 on; 5 of each before.
    assert counts == [[5, 5, 5, 5]] * 2 + [[8, 2, 8, 2]] * 2
    assert not set(hands.rows[1][1].tolist()) & set(hands.rows[2][1].tolist())
    assert hands.rows[0][0] is hands.rows[3][0]


def test_a_shift_lasts_through_later_refreshes() -> None:
    shift = DataShift(0, 1, (1.0, 0.0, 0.0, 0.0))
    hands = dealt(Iid(), schedule=Schedule(5, refresh_every=2, shifts=(shift,)))
    assert [int(hands.held(0, n).counts(CLASSES)[0]) for n in range(1, 5)] == [20] * 4


def test_the_control_of_a_shift_swaps_examples_and_keeps_the_composition() -> None:
    hands = dealt(Dirichlet(), schedule=Schedule(3, shifts=(DataShift(0, 1),)))
    before, after = hands.held(0, 0), hands.held(0, 1)
    assert before.counts(CLASSES).equal(after.counts(CLASSES))
    assert not set(hands.rows[0][0].tolist()) & set(hands.rows[1][0].tolist())


def test_a_client_that_is_a_user_stays_that_user_through_refreshes_and_shifts() -> None:
    shift = DataShift(2, 1, (0.7, 0.1, 0.1, 0.1))
    hands = dealt(ByUser(), schedule=Schedule(4, refresh_every=2, shifts=(shift,)))
    users = torch.arange(1200) // CLASSES % 6
    for who in range(3):
        held = torch.cat([hands.rows[number][who] for number in range(4)])
        assert len(users[held].unique()) == 1
    assert hands.held(2, 1).counts(CLASSES).tolist() == [14, 2, 2, 2]


def test_a_pool_used_up_by_refreshes_is_refused() -> None:
    # 3 clients * 20 examples * 25 chunks = 1500, of 1200 - 20.
    with pytest.raises(PlanError, match="are left"):
        dealt(Iid(), schedule=Schedule(25, refresh_every=1))


def test_copies_never_get_into_the_auxiliary_examples() -> None:
    # Of 200 training examples 100 are copies of the other 100 but for the last 8 of them.
    inputs = torch.cat([torch.arange(100.0), torch.arange(92.0), torch.arange(900.0, 908.0)])
    data = dataset(Examples(inputs[:, None], torch.arange(200) % CLASSES))
    # Unique are 92..99 and 900..907: 16, four of each label.
    hands = dealt(Iid(), data=data, auxiliary=Auxiliary(per_class=4), sizes=(10, 10))
    assert sorted(hands.auxiliary.inputs.flatten().tolist()) == [
        *range(92, 100),
        *range(900, 908),
    ]
    with pytest.raises(PlanError, match="5 examples with label 0 are needed and 4 are left"):
        dealt(Iid(), data=data, auxiliary=Auxiliary(per_class=5), sizes=(10, 10))


def test_no_outsider_is_a_copy_of_what_a_client_trains_on() -> None:
    # Of 1,200 training examples 300 have a copy, and 100 more one in the test part.
    inputs = torch.arange(1200.0)
    inputs[900:] = inputs[:300]
    inputs[300:400] = torch.arange(5000.0, 5100.0)
    train = Examples(inputs[:, None], torch.arange(1200) % CLASSES)
    done = dealt(
        Iid(), clients=3, sizes=(150, 150), data=dataset(train), candidates=Candidates(150, 200)
    )
    assert done.candidates is not None
    members = {place for own in done.members.values() for place in own}
    outsiders = [n for n in range(len(done.candidates)) if n not in members]
    assert len(outsiders) == 200
    held = torch.cat([done.held(number, 0).inputs for number in range(3)])
    assert not torch.isin(done.candidates.inputs[outsiders], held).any()
    # Nor is a member what somebody else holds, or the test part.
    everything = torch.cat([train.inputs, done.test.inputs]).flatten().tolist()
    assert all(everything.count(one) == 1 for one in done.candidates.inputs.flatten().tolist())


@settings(max_examples=30, deadline=None)
@given(
    split=splits,
    canaries=st.sampled_from(["labelled", "mislabelled"]),
    size=st.integers(4, 20),
    seed=st.integers(0, 999),
)
def test_canaries_come_beside_what_the_split_gives_and_do_not_hang_on_it(
    split: Split, canaries: Literal["labelled", "mislabelled"], size: int, seed: int
) -> None:
    wanted = Candidates(5, 20, canaries)
    done = dealt(split, sizes=(size, size), seed=seed, candidates=wanted)
    asked = done.candidates
    assert asked is not None
    assert done.canary_odds == 5 / 20
    same = dealt(Iid(), sizes=(7, 7), seed=seed, candidates=wanted)
    assert same.members == done.members
    assert same.candidates is not None
    assert torch.equal(same.candidates.inputs, asked.inputs)
    assert torch.equal(same.candidates.labels, asked.labels)
    assert torch.equal(same.auxiliary.inputs, done.auxiliary.inputs)
    taken = done.auxiliary.inputs.flatten().tolist()
    for number in range(3):
        own, held = done.members[client(number)], done.held(number, 0)
        assert len(held) == size + len(own)
        # The last that each holds are its canaries, under the labels that are asked about.
        assert torch.equal(held.inputs[size:], asked.inputs[list(own)])
        assert torch.equal(held.labels[size:], asked.labels[list(own)])
        taken += held.inputs.flatten().tolist()
    members = {place for own in done.members.values() for place in own}
    nobodys = [n for n in range(len(asked)) if n not in members]
    taken += asked.inputs[nobodys].flatten().tolist()
    assert len(set(taken)) == len(taken)
    own_labels = dataset().train.labels[asked.inputs.flatten().long()]
    is_right = asked.labels == own_labels
    assert bool(is_right.all()) if canaries == "labelled" else not bool(is_right.any())


def test_nobody_holds_what_a_canarys_record_has_besides() -> None:
    train = dataset().train
    records = torch.arange(len(train)) // 3
    done = dealt(
        Iid(),
        sizes=(60, 60),
        data=replace(dataset(), records=records),
        candidates=Candidates(5, 20, "labelled"),
    )
    assert done.candidates is not None
    asked = records[done.candidates.inputs.flatten().long()]
    for number in range(3):
        own = len(done.members[client(number)])
        beside = done.held(number, 0).inputs[: 60 if own == 0 else -own].flatten().long()
        assert not torch.isin(records[beside], asked).any()


def test_a_canary_is_no_person() -> None:
    with pytest.raises(PlanError, match="leave out canaries or people"):
        dealt(ByUser(), people=People(), candidates=Candidates(2, 5, "labelled"))


def test_copies_of_test_examples_never_get_into_the_auxiliary_examples() -> None:
    # Training inputs 0..99 and 5000..5019, the latter 20 being test inputs too.
    inputs = torch.cat([torch.arange(100.0), torch.arange(5000.0, 5020.0)])
    data = dataset(Examples(inputs[:, None], torch.arange(120) % CLASSES))
    hands = dealt(Iid(), data=data, auxiliary=Auxiliary(total=80), sizes=(8, 8))
    keys = content_keys(data.test.inputs)
    assert not torch.isin(content_keys(hands.auxiliary.inputs), keys).any()


def test_copies_are_looked_for_anew_where_the_same_training_part_has_another_test() -> None:
    # The first test holds copies of the training examples 0 to 99, the second of 100 to 199.
    train, task = examples(0, 200), Task((1,), ("a", "b", "c", "d"))
    for first, free in ((0, range(100, 200)), (100, range(100)), (0, range(100, 200))):
        data = Dataset(train, examples(first, 100), task)
        given = dealt(Iid(), clients=1, auxiliary=Auxiliary(per_class=25), data=data).auxiliary
        assert sorted(given.inputs.flatten().tolist()) == list(free)


def test_a_total_of_auxiliary_examples_follows_the_shares_of_the_pool() -> None:
    labels = torch.tensor([0] * 300 + [1] * 100)
    train = Examples(torch.arange(400.0)[:, None], labels)
    hands = dealt(Dirichlet(), data=dataset(train), auxiliary=Auxiliary(total=40))
    assert hands.auxiliary.counts(CLASSES).tolist() == [30, 10, 0, 0]


def test_no_auxiliary_examples_are_possible() -> None:
    assert len(dealt(Iid(), auxiliary=Auxiliary()).auxiliary) == 0


def test_a_part_of_the_test_examples_can_be_used() -> None:
    assert len(dealt(Iid(), test=30).test) == 30
    assert len(dealt(Iid()).test) == 100


@pytest.mark.parametrize("test", [0, 101])
def test_an_impossible_part_of_the_test_examples_is_refused(test: int) -> None:
    with pytest.raises(PlanError, match="100 test examples"):
        dealt(Iid(), test=test)


def test_impossible_clients_are_refused() -> None:
    with pytest.raises(PlanError, match="smallest first"):
        dealt(Iid(), sizes=(5, 4))
    with pytest.raises(PlanError, match="client 3 shifts, but there are 3 clients"):
        dealt(Iid(), schedule=Schedule(3, shifts=(DataShift(3, 1),)))
    with pytest.raises(PlanError, match="2 shares, but the task has 4"):
        dealt(Iid(), schedule=Schedule(3, shifts=(DataShift(0, 1, (0.5, 0.5)),)))
    with pytest.raises(PlanError, match="not both"):
        Auxiliary(per_class=1, total=2)


def test_explicit_shares_are_kept_through_the_deal() -> None:
    hands = dealt(Shares(((0.5, 0.5, 0.0, 0.0), (0.0, 0.0, 0.1, 0.9))), clients=2)
    counts = [hands.held(client, 0).counts(CLASSES).tolist() for client in range(2)]
    assert counts == [[10, 10, 0, 0], [0, 0, 2, 18]]


EVERYBODY = People(unseen=1, holdout=1, shadow_devices=True)
"""Six users of 200 examples; 100 of each are prior, save for what is auxiliary."""


def numbers_of(examples: Examples) -> set[int]:
    """Which examples these are: an input is its example's own number."""
    return set(examples.inputs.flatten().long().tolist())


@settings(max_examples=25, deadline=None)
@given(
    prior=st.sampled_from(["random", "chronological", "chronological_within_labels"]),
    is_exchanged=st.booleans(),
    refresh_every=st.sampled_from([None, 1]),
    background=st.sampled_from([None, 30]),
    per_class=st.integers(0, 5),
    seed=st.integers(0, 999),
)
def test_no_example_of_the_attackers_is_a_clients_or_public(
    prior: PriorKind,
    is_exchanged: bool,
    refresh_every: int | None,
    background: int | None,
    per_class: int,
    seed: int,
) -> None:
    hands = dealt(
        ByUser(),
        sizes=(4, 7),
        auxiliary=Auxiliary(per_class=per_class),
        schedule=Schedule(3, refresh_every),
        people=replace(EVERYBODY, prior=prior),
        is_exchanged=is_exchanged,
        background=background,
        seed=seed,
    )
    assert hands.who is not None
    known = set().union(*map(numbers_of, hands.who.known.examples().values()))
    held = {int(row) for at in hands.rows for rows in at[:3] for row in rows}
    public = set() if hands.background is None else numbers_of(hands.background)
    auxiliary = numbers_of(hands.auxiliary)
    sets = (known, held, public, auxiliary, numbers_of(hands.test))
    assert all(not one & other for one, other in combinations(sets, 2))
    assert len(public) == (background or 0)
    # Who is held out gives nothing to the public either.
    users = users_of_dataset()
    (absent,) = (int(name.removeprefix("user ")) for name in hands.who.known.holdout)
    assert absent not in set(users[list(held | public)].tolist())


def users_of_dataset() -> torch.Tensor:
    users = dataset().users
    assert users is not None
    return users


def test_shadow_devices_hold_the_priors_after_the_clients_in_every_round() -> None:
    schedule = Schedule(3, refresh_every=1)
    hands = dealt(ByUser(), sizes=(8, 8), schedule=schedule, people=EVERYBODY)
    assert hands.who is not None
    priors = list(hands.who.known.examples().values())
    assert len(priors) == 3 - 1 + 1
    for held in hands.rows:
        assert len(held) == 3 + len(priors)
        for rows, prior in zip(held[3:], priors, strict=True):
            assert hands.pool.inputs[rows].equal(prior.inputs)


def test_a_client_holds_the_private_examples_of_the_user_that_it_stands_for() -> None:
    hands = dealt(ByUser(), people=People(), auxiliary=Auxiliary())
    assert hands.who is not None
    users = users_of_dataset()
    for number in range(3):
        name = hands.who.users[client(number)]
        (user,) = set(users[hands.rows[0][number]].tolist())
        assert name == f"user {user}"
        prior = hands.who.known.priors[name]
        assert set(users[list(numbers_of(prior))].tolist()) == {user}
        # Without times, those that come first in the file.
        assert max(numbers_of(prior)) < int(hands.rows[0][number].min())


def test_the_control_deals_the_same_examples_anew_and_leaves_the_attacker_all_it_has() -> None:
    run, control = (
        dealt(ByUser(), sizes=(20, 60), people=EVERYBODY, is_exchanged=exchanged)
        for exchanged in (False, True)
    )
    held, mixed = run.rows[0][:3], control.rows[0][:3]
    assert sorted(map(len, held)) == sorted(map(len, mixed))
    assert sorted(torch.cat(held).tolist()) == sorted(torch.cat(mixed).tolist())
    users = users_of_dataset()
    assert all(len(users[rows].unique()) == 1 for rows in held)
    assert all(len(users[rows].unique()) > 1 for rows in mixed)
    assert run.who is not None
    assert control.who is not None
    assert control.who.users == run.who.users
    assert control.who.known.priors.keys() == run.who.known.priors.keys()
    for name, prior in run.who.known.examples().items():
        assert control.who.known.examples()[name].inputs.equal(prior.inputs)
    for one, other in zip(run.rows[0][3:], control.rows[0][3:], strict=True):
        assert one.equal(other)
    assert control.auxiliary.inputs.equal(run.auxiliary.inputs)


def test_the_control_stays_mixed_through_refreshes() -> None:
    schedule = Schedule(3, refresh_every=1)
    hands = dealt(ByUser(), people=People(), sizes=(8, 8), is_exchanged=True, schedule=schedule)
    users = users_of_dataset()
    for held in hands.rows:
        # Each exchange brings examples of the same users and labels.
        makeup = [(4 * users[rows] + hands.pool.labels[rows]).bincount() for rows in held]
        before = [(4 * users[rows] + hands.pool.labels[rows]).bincount() for rows in
                  hands.rows[0]]  # fmt: skip
        assert all(one.equal(other) for one, other in zip(makeup, before, strict=True))
    assert not set(hands.rows[0][0].tolist()) & set(hands.rows[1][0].tolist())


def test_without_people_nobody_is_known_and_nothing_else_is_dealt() -> None:
    plain = dealt(ByUser())
    assert plain.who is None
    assert plain.background is None
    assert len(plain.rows[0]) == 3


def test_a_client_that_shifts_goes_on_as_the_same_user_whose_prior_is_known() -> None:
    shift = DataShift(1, 1, (0.7, 0.1, 0.1, 0.1))
    hands = dealt(ByUser(), people=People(), schedule=Schedule(2, shifts=(shift,)))
    assert hands.who is not None
    users = users_of_dataset()
    (user,) = set(users[hands.rows[1][1]].tolist())
    assert hands.who.users[client(1)] == f"user {user}"
    assert hands.held(1, 1).counts(CLASSES).tolist() == [14, 2, 2, 2]


def test_devices_and_distorted_inputs_do_not_go_together() -> None:
    schedule = Schedule(2, shifts=(DataShift(0, 1, distortion=0.5),))
    with pytest.raises(PlanError, match="leave out shadow_devices or the shift by distortion"):
        dealt(ByUser(), people=EVERYBODY, schedule=schedule)
    hands = dealt(ByUser(), people=People(), schedule=schedule)
    assert len(hands.rows[1]) == 3


def test_matched_users_bring_all_that_they_have_or_are_refused() -> None:
    # Of every label 10 private and 10 prior examples: 40 of each user.
    people = People("chronological_within_labels", per_label=10)
    hands = dealt(ByUser(), people=people, sizes=(40, 60), auxiliary=Auxiliary())
    assert hands.who is not None
    assert [hands.held(who, 0).counts(CLASSES).tolist() for who in range(3)] == [[10] * 4] * 3
    for prior in hands.who.known.priors.values():
        assert prior.counts(CLASSES).tolist() == [10] * 4
    with pytest.raises(PlanError, match="have 40 private examples each: let examples be 40 or"):
        dealt(ByUser(), people=people, sizes=(39, 60), auxiliary=Auxiliary())


def test_public_examples_are_of_users_who_take_no_part() -> None:
    hands = dealt(ByUser(), background=50)
    assert hands.background is not None
    assert len(numbers_of(hands.background)) == 50
    users = users_of_dataset()
    busy = {int(users[rows[0]]) for rows in hands.rows[0]}
    assert not busy & set(users[list(numbers_of(hands.background))].tolist())
    # Six users, three of whom take part: 600 less the auxiliary ones.
    with pytest.raises(PlanError, match="601 public examples are wanted, and users who take"):
        dealt(ByUser(), background=601)
    # Of whom the attacker has nothing no example is spared for it; one user is held out.
    bare = Auxiliary()
    known = dealt(ByUser(), background=400, people=People(holdout=1), auxiliary=bare)
    assert known.background is not None
    assert len(numbers_of(known.background)) == 400
    with pytest.raises(PlanError, match="users who take no part have 400"):
        dealt(ByUser(), background=401, people=People(holdout=1), auxiliary=bare)


def test_public_examples_of_the_data_set_itself_come_first() -> None:
    own = replace(dataset(), background=examples(9000, 40))
    assert numbers_of(dealt(ByUser(), data=own).background or own.test) == {*range(9000, 9040)}
    some = dealt(ByUser(), data=own, background=25).background
    assert some is not None
    assert len(numbers_of(some)) == 25
    assert numbers_of(some) < {*range(9000, 9040)}
    again = dealt(ByUser(), data=own, background=25, is_exchanged=True, people=People())
    assert again.background is not None
    assert again.background.inputs.equal(some.inputs)


def test_public_examples_without_users_to_have_them_of_are_refused() -> None:
    nameless = replace(dataset(), users=None)
    assert dealt(Iid(), data=nameless).background is None
    with pytest.raises(PlanError, match="no public examples and names no users"):
        dealt(Iid(), data=nameless, background=5)


def test_of_a_record_that_the_attacker_has_an_example_of_nobody_holds_another() -> None:
    # Records of five examples each, all of one user.
    records = torch.arange(1200) // 5
    cut = replace(dataset(), users=records % 6, records=records)
    hands = dealt(Iid(), data=cut, sizes=(100, 100), auxiliary=Auxiliary(total=30))
    known = set(records[list(numbers_of(hands.auxiliary))].tolist())
    assert not known & set(records[torch.cat(hands.rows[0])].tolist())
    # Thirty at least of 240 records.
    with pytest.raises(PlanError):
        dealt(Iid(), data=cut, sizes=(360, 360), auxiliary=Auxiliary(total=30))
