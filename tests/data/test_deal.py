import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.composition import ratio_shares
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset
from overheard.data.deal import Auxiliary, Deal, deal
from overheard.data.schedule import Schedule, Shift
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
) -> Deal:
    return deal(
        dataset() if data is None else data,
        split,
        clients=clients,
        sizes=sizes,
        auxiliary=Auxiliary(per_class=5) if auxiliary is None else auxiliary,
        test=test,
        schedule=Schedule(rounds=1) if schedule is None else schedule,
        seed=Seed(seed),
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
    shift = Shift(1, 2, ratio_shares(CLASSES, (0, 2), 0.8))
    hands = dealt(Iid(0.0), schedule=Schedule(4, shifts=(shift,)))
    counts = [hands.held(1, number).counts(CLASSES).tolist() for number in range(4)]
    # 20 * (.4, .1, .4, .1) from round 2 on; 5 of each before.
    assert counts == [[5, 5, 5, 5]] * 2 + [[8, 2, 8, 2]] * 2
    assert not set(hands.rows[1][1].tolist()) & set(hands.rows[2][1].tolist())
    assert hands.rows[0][0] is hands.rows[3][0]


def test_a_shift_lasts_through_later_refreshes() -> None:
    shift = Shift(0, 1, (1.0, 0.0, 0.0, 0.0))
    hands = dealt(Iid(), schedule=Schedule(5, refresh_every=2, shifts=(shift,)))
    assert [int(hands.held(0, n).counts(CLASSES)[0]) for n in range(1, 5)] == [20] * 4


def test_the_control_of_a_shift_swaps_examples_and_keeps_the_composition() -> None:
    hands = dealt(Dirichlet(), schedule=Schedule(3, shifts=(Shift(0, 1),)))
    before, after = hands.held(0, 0), hands.held(0, 1)
    assert before.counts(CLASSES).equal(after.counts(CLASSES))
    assert not set(hands.rows[0][0].tolist()) & set(hands.rows[1][0].tolist())


def test_a_client_that_is_a_user_stays_that_user_through_refreshes_and_shifts() -> None:
    shift = Shift(2, 1, (0.7, 0.1, 0.1, 0.1))
    hands = dealt(ByUser(), schedule=Schedule(4, refresh_every=2, shifts=(shift,)))
    users = torch.arange(1200) // CLASSES % 6
    for client in range(3):
        held = torch.cat([hands.rows[number][client] for number in range(4)])
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
        dealt(Iid(), schedule=Schedule(3, shifts=(Shift(3, 1),)))
    with pytest.raises(PlanError, match="2 shares, but the task has 4"):
        dealt(Iid(), schedule=Schedule(3, shifts=(Shift(0, 1, (0.5, 0.5)),)))
    with pytest.raises(PlanError, match="not both"):
        Auxiliary(per_class=1, total=2)


def test_explicit_shares_are_kept_through_the_deal() -> None:
    hands = dealt(Shares(((0.5, 0.5, 0.0, 0.0), (0.0, 0.0, 0.1, 0.9))), clients=2)
    counts = [hands.held(client, 0).counts(CLASSES).tolist() for client in range(2)]
    assert counts == [[10, 10, 0, 0], [0, 0, 2, 18]]
