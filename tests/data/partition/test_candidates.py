import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.partition.candidates import Candidates, ask_about, mislabelled, put_in

HELD = (torch.arange(10), torch.arange(10, 13))


def asked(
    members: int = 5,
    outsiders: int = 20,
    size: int = 60,
    twice: tuple[int, ...] = (),
    records: torch.Tensor | None = None,
):
    free = torch.ones(size, dtype=torch.bool)
    free[13:20] = False  # the attacker's
    once = torch.ones(size, dtype=torch.bool)
    once[list(twice)] = False
    return ask_about(Candidates(members, outsiders), HELD, free, once, Seed(0), records)


def test_so_many_of_each_client_and_of_nobody_are_asked_about() -> None:
    told = asked()
    assert len(told.rows) == 5 + 3 + 20 == len(set(told.rows.tolist()))
    assert [len(own) for own in told.members] == [5, 3]
    for own, held in zip(told.members, HELD, strict=True):
        assert set(told.rows[list(own)].tolist()) <= set(held.tolist())
    rest = set(range(28)) - {place for own in told.members for place in own}
    assert set(told.rows[list(rest)].tolist()) == set(told.outsiders.tolist())


def test_outsiders_are_nobodys() -> None:
    assert set(asked(outsiders=40).outsiders.tolist()) == set(range(20, 60))


def test_records_that_there_are_copies_of_are_not_asked_about() -> None:
    told = asked(members=10, outsiders=39, twice=(0, 1, 25))
    assert [len(own) for own in told.members] == [8, 3]
    assert not {0, 1, 25} & set(told.rows.tolist())


def test_nothing_cut_out_of_a_members_record_is_an_outsider() -> None:
    # Records of four examples each: 12 is a client's, so 13 to 15 are half in; 20 on are not.
    told = asked(outsiders=40, records=torch.arange(60) // 4)
    assert set(told.outsiders.tolist()) == set(range(20, 60))
    records = torch.arange(60)
    records[[25, 30]] = 0
    told = asked(outsiders=38, records=records)
    assert set(told.outsiders.tolist()) == set(range(20, 60)) - {25, 30}


def test_the_order_tells_nothing() -> None:
    places = [place for own in asked(members=10, outsiders=10).members for place in own]
    assert sorted(places) != list(range(13))
    assert max(places) > 12


def test_too_few_that_nobody_holds_are_told() -> None:
    with pytest.raises(PlanError, match="41 outsiders are wanted, and nobody holds 40"):
        asked(outsiders=41)


@pytest.mark.parametrize("settings", [(0, 1), (1, 0)])
def test_a_question_with_one_answer_is_refused(settings) -> None:
    with pytest.raises(ValueError, match="members and outsiders are 1 or more"):
        Candidates(*settings)


def canaries(
    members: int = 10,
    outsiders: int = 20,
    size: int = 60,
    clients: int = 2,
    records: torch.Tensor | None = None,
    seed: int = 0,
):
    free = torch.ones(size, dtype=torch.bool)
    free[:5] = False  # the attacker's
    once = torch.ones(size, dtype=torch.bool)
    once[5:10] = False
    wanted = Candidates(members, outsiders, canaries="labelled")
    return put_in(wanted, clients, free, once, Seed(seed), records)


def test_canaries_are_what_nobody_has_and_nothing_copies() -> None:
    told = canaries(members=15)
    assert sorted(told.rows.tolist()) == list(range(10, 60))
    with pytest.raises(PlanError, match="52 canaries are wanted, and attackers leave 50"):
        canaries(members=16)


def test_each_canary_goes_to_one_client_or_to_nobody() -> None:
    told = canaries()
    first, second = map(set, told.members)
    assert not first & second
    assert len(told.rows) == 40 == len(first) + len(second) + len(told.outsiders)
    nobodys = set(told.rows[sorted(set(range(40)) - first - second)].tolist())
    assert set(told.outsiders.tolist()) == nobodys


def test_a_die_deals_canaries_so_that_their_number_varies_and_none_leans_on_another() -> None:
    draws = [canaries(members=4, outsiders=4, clients=3, seed=seed) for seed in range(300)]
    counts = torch.tensor([[len(own) for own in one.members] for one in draws]).double()
    # Binomial: 16 canaries, a chance of 1 in 4 each: mean 4, variance 3; of a fixed number 0.
    assert (counts.mean(0) - 4).abs().max() < 5 * (3 / 300) ** 0.5
    assert (counts.var(0) - 3).abs().max() < 1.2
    # Whether the first is a client's tells nothing of the second: covariance 0 within 5 errors.
    held = torch.tensor(
        [[n in set(sum(d.members, ())) for n in (0, 1)] for d in draws]
    ).double()
    together = (held - held.mean(0)).prod(1).mean()
    assert abs(float(together)) < 5 * 0.1875 / 300**0.5


def test_no_two_canaries_are_cut_out_of_one_record() -> None:
    records = torch.arange(60) // 2
    told = canaries(members=5, outsiders=15, records=records)
    assert len(set(records[told.rows].tolist())) == 25 == len(told.rows)
    with pytest.raises(PlanError, match="26 canaries are wanted, and attackers leave 25"):
        canaries(members=5, outsiders=16, records=records)


def test_a_canary_may_bear_any_label_but_its_own() -> None:
    labels = torch.arange(3000) % 3
    rows = torch.arange(0, 3000, 2)
    told = mislabelled(labels, rows, 3, Seed(0))
    assert torch.equal(told[1::2], labels[1::2])
    steps = (told[rows] - labels[rows]) % 3
    assert sorted(set(steps.tolist())) == [1, 2]
    # 1,500 tosses of a coin: one standard error is 0.013.
    assert abs(float((steps == 1).double().mean()) - 0.5) < 0.065
    assert torch.equal(labels, torch.arange(3000) % 3)
