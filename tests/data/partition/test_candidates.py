import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import (
    CandidateSettings,
    assign_canaries,
    draw_candidates,
)

CLIENT_ROWS = (torch.arange(10), torch.arange(10, 13))


def drawn_candidates(
    members: int = 5,
    outsiders: int = 20,
    size: int = 60,
    copied: tuple[int, ...] = (),
    records: torch.Tensor | None = None,
):
    free = torch.ones(size, dtype=torch.bool)
    free[13:20] = False  # the attacker's
    unique = torch.ones(size, dtype=torch.bool)
    unique[list(copied)] = False
    return draw_candidates(
        CandidateSettings(members, outsiders), CLIENT_ROWS, free, unique, Seed(0), records
    )


def test_draws_so_many_members_per_client_and_so_many_outsiders() -> None:
    result = drawn_candidates()
    assert len(result.rows) == 5 + 3 + 20 == len(set(result.rows.tolist()))
    assert [len(places) for places in result.members] == [5, 3]
    for places, held in zip(result.members, CLIENT_ROWS, strict=True):
        assert set(result.rows[list(places)].tolist()) <= set(held.tolist())
    rest = set(range(28)) - {place for places in result.members for place in places}
    assert set(result.rows[list(rest)].tolist()) == set(result.non_members.tolist())


def test_a_record_with_a_copy_is_no_candidate() -> None:
    result = drawn_candidates(members=10, outsiders=39, copied=(0, 1, 25))
    assert [len(places) for places in result.members] == [8, 3]
    assert not {0, 1, 25} & set(result.rows.tolist())
    with pytest.raises(PlanError, match="40 outsiders are needed, but only 39 examples"):
        drawn_candidates(outsiders=40, copied=(25,))


def test_no_outsider_is_held_or_cut_from_a_record_of_a_client() -> None:
    # Records of four examples each: a client holds 12, so 13 to 15 are excluded; 20 on are not.
    for records in (None, torch.arange(60) // 4):
        result = drawn_candidates(outsiders=40, records=records)
        assert set(result.non_members.tolist()) == set(range(20, 60))
    records = torch.arange(60)
    records[[25, 30]] = 0
    result = drawn_candidates(outsiders=38, records=records)
    assert set(result.non_members.tolist()) == set(range(20, 60)) - {25, 30}


def test_candidates_are_in_random_order() -> None:
    places = [
        place
        for places in drawn_candidates(members=10, outsiders=10).members
        for place in places
    ]
    assert sorted(places) != list(range(13))
    assert max(places) > 12


def drawn_canaries(
    members: int = 10,
    outsiders: int = 20,
    size: int = 60,
    clients: int = 2,
    records: torch.Tensor | None = None,
    seed: int = 0,
    at_odds: bool = False,
):
    free = torch.ones(size, dtype=torch.bool)
    free[:5] = False  # the attacker's
    unique = torch.ones(size, dtype=torch.bool)
    unique[5:10] = False
    pool = Examples(torch.arange(float(size))[:, None], torch.arange(size) % 3)
    data = Dataset(pool, pool, Task((1,), ("a", "b", "c")), records=records)
    settings = CandidateSettings(members, outsiders, canaries="labelled")
    canaries, _ = assign_canaries(
        data, settings, clients, free & unique, Seed(seed), at_odds=at_odds
    )
    return canaries


def test_canaries_are_unused_and_have_no_copy() -> None:
    result = drawn_canaries(members=15, at_odds=True)
    assert sorted(result.rows.tolist()) == list(range(10, 60))
    with pytest.raises(PlanError, match="52 canaries are needed, but only 50 unused"):
        drawn_canaries(members=16, at_odds=True)
    # A fair coin holds out as many as it gives.
    with pytest.raises(PlanError, match="60 canaries are needed, but only 50 unused"):
        drawn_canaries(members=15)


def test_each_canary_goes_to_one_client_or_to_none() -> None:
    result = drawn_canaries()
    first, second = map(set, result.members)
    assert not first & second
    assert len(result.rows) == 40 == len(first) + len(second) + len(result.non_members)
    held_out = set(result.rows[sorted(set(range(40)) - first - second)].tolist())
    assert set(result.non_members.tolist()) == held_out


def test_canaries_are_assigned_at_random_and_independently() -> None:
    draws = [
        drawn_canaries(members=4, outsiders=4, clients=3, seed=seed, at_odds=True)
        for seed in range(300)
    ]
    counts = torch.tensor([[len(places) for places in one.members] for one in draws]).double()
    # Binomial: 16 canaries, a chance of 1 in 4 each: mean 4, variance 3; of a fixed number 0.
    assert (counts.mean(0) - 4).abs().max() < 5 * (3 / 300) ** 0.5
    assert (counts.var(0) - 3).abs().max() < 1.2
    # Assignments of the first two are uncorrelated: covariance 0 within 5 standard errors.
    held = torch.tensor(
        [[n in set(sum(d.members, ())) for n in (0, 1)] for d in draws]
    ).double()
    together = (held - held.mean(0)).prod(1).mean()
    assert abs(float(together)) < 5 * 0.1875 / 300**0.5


def test_a_fair_coin_gives_each_canary_to_its_client_or_holds_it_out() -> None:
    draws = [
        drawn_canaries(members=4, outsiders=14, clients=3, seed=seed) for seed in range(300)
    ]
    for one in draws:
        assert sorted(sum(one.offered, ())) == list(range(24))  # the other two: to nobody
        assert len(one.rows) == 26
        for held, offered in zip(one.members, one.offered, strict=True):
            assert set(held) <= set(offered)
    # Binomial: the client of 24 canaries, and the coin of each.
    offers = torch.tensor([[len(one) for one in draw.offered] for draw in draws]).double()
    assert (offers.mean(0) - 8).abs().max() < 5 * (24 * 2 / 9 / 300) ** 0.5
    given = torch.tensor([sum(map(len, draw.members)) for draw in draws]).double()
    assert abs(float(given.mean()) - 12) < 5 * (6 / 300) ** 0.5
    assert abs(float(given.var()) - 6) < 2.5
    # Whether a canary is in says nothing of its client.
    first = torch.tensor([[n in draw.offered[0] for n in range(24)] for draw in draws])
    is_in = torch.tensor(
        [[n in set(sum(draw.members, ())) for n in range(24)] for draw in draws]
    )
    shares = [float(is_in[where].double().mean()) for where in (first, ~first)]
    assert max(abs(one - 0.5) for one in shares) < 0.04


def test_no_two_canaries_are_cut_from_one_record() -> None:
    records = torch.arange(60) // 2
    result = drawn_canaries(members=5, outsiders=15, records=records)
    assert len(set(records[result.rows].tolist())) == 25 == len(result.rows)
    with pytest.raises(PlanError, match="26 canaries are needed, but only 25 unused"):
        drawn_canaries(members=5, outsiders=16, records=records)


def test_a_mislabelled_canary_has_any_label_but_its_own() -> None:
    labels, size = torch.arange(3000) % 3, 3000
    pool = Examples(torch.arange(3000.0)[:, None], labels)
    settings = CandidateSettings(750, 750, canaries="mislabelled")
    is_even = torch.arange(size) % 2 == 0
    canaries, data = assign_canaries(
        Dataset(pool, pool, Task((1,), ("a", "b", "c"))), settings, 1, is_even, Seed(0)
    )
    rows, result = canaries.rows, data.train.labels
    assert torch.equal(rows.sort().values, torch.arange(0, size, 2))
    assert torch.equal(result[1::2], labels[1::2])
    steps = (result[rows] - labels[rows]) % 3
    assert sorted(set(steps.tolist())) == [1, 2]
    # 1,500 tosses of a coin: one standard error is 0.013.
    assert abs(float((steps == 1).double().mean()) - 0.5) < 0.065
    assert torch.equal(pool.labels, torch.arange(3000) % 3)
