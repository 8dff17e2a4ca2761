import numpy as np
import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.data.splits.iid import Iid
from overheard.simulation.federations.design import (
    CONCENTRATIONS,
    FederationDesign,
    draw_federation,
    held_shares,
    population_shares,
)
from overheard.simulation.federations.resampling_pool import build_resampling_pool

LABELS = torch.arange(40) % 4
POOL = build_resampling_pool(Examples(torch.rand(40, 2), LABELS), 50, Seed(0))
DESIGN = FederationDesign(
    clients=3,
    observers=1,
    target_clients=2,
    rounds=7,
    exchange_every=3,
    sizes=(60, 60),
    label_shares=(0.4, 0.3, 0.2, 0.1),
)


def test_clients_hold_a_new_draw_of_the_same_shares_after_each_exchange() -> None:
    federation = draw_federation(DESIGN, POOL, 0, Seed(1))
    assert len(federation.rows) == DESIGN.chunks == 3
    assert [len(chunk) for chunk in federation.rows] == [3, 3, 3]
    assert all(len(rows) == 60 for chunk in federation.rows for rows in chunk)
    assert np.allclose(federation.shares, DESIGN.label_shares)
    counts = [POOL.examples.labels[chunk[1]].bincount(minlength=4) for chunk in federation.rows]
    assert len({tuple(one.tolist()) for one in counts}) > 1


def test_clients_of_some_federations_have_shares_of_their_own() -> None:
    number = CONCENTRATIONS.index(10.0)
    federation = draw_federation(DESIGN, POOL, number, Seed(1))
    assert not np.allclose(federation.shares[0, 0], federation.shares[0, 1])
    assert np.allclose(federation.shares[0], federation.shares[2])
    assert np.allclose(federation.shares.sum(-1), 1)


@pytest.mark.parametrize("number", range(8))
def test_a_shift_changes_the_target_alone_and_its_rising_labels_rise(number) -> None:
    federation = draw_federation(DESIGN, POOL, number, Seed(2), shifts=True)
    before, after = federation.shares[0], federation.shares[-1]
    assert np.allclose(before[0], after[0])
    rise = (after - before)[:, federation.rising].sum(1)
    assert rise[1:].max() > 0
    assert federation.rising.sum() in {1, 2}
    assert np.allclose(federation.shares[federation.shift_chunk - 1], before)


def test_one_label_any_number_and_half_of_the_labels_rise_in_turn() -> None:
    design = FederationDesign(2, 1, 1, 4, 1, (40, 40), (0.1,) * 10)
    pool = build_resampling_pool(Examples(torch.rand(50, 2), torch.arange(50) % 10), 9, Seed(0))
    risen = [
        int(draw_federation(design, pool, number, Seed(5), shifts=True).rising.sum())
        for number in range(30)
    ]
    assert set(risen[::3]) == {1}
    assert set(risen[2::3]) == {5}
    assert len(set(risen[1::3])) > 2


def test_clients_hold_unaltered_examples_first_where_the_target_shifts_and_any_copy_elsewhere():
    originals = [
        np.mean([float((rows < len(LABELS)).double().mean()) for rows in federation.rows[0]])
        for shifts in (False, True)
        for federation in [draw_federation(DESIGN, POOL, 0, Seed(6), shifts=shifts)]
    ]
    # Of each label there are 10 originals among 100 copies, and clients hold 60 examples.
    assert originals[0] < 0.2
    assert originals[1] > 0.3


def test_shares_of_the_target_are_weighted_by_size_and_given_by_round() -> None:
    federation = draw_federation(DESIGN, POOL, 3, Seed(3), shifts=True)
    population = population_shares(DESIGN, [federation])[0]
    assert population.shape == (7, 4)
    assert np.allclose(population[0], federation.shares[0, 1:].mean(0))
    assert np.allclose(population[6], federation.shares[2, 1:].mean(0))
    held = held_shares(DESIGN, [federation], POOL.examples.labels.numpy())[0]
    rows = torch.cat([federation.rows[1][1], federation.rows[1][2]])
    counts = POOL.examples.labels[rows].bincount(minlength=4)
    assert np.allclose(held[3], counts.numpy() / 120)


def test_given_splits_replace_the_default_shares() -> None:
    design = FederationDesign(2, 1, 1, 3, 1, (40, 40), (0.25,) * 4, (Iid(fluctuation=0.0),))
    federation = draw_federation(design, POOL, 3, Seed(4))
    assert np.allclose(federation.shares, 0.25)


def test_refuses_a_target_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        FederationDesign(2, 1, 2, 3, 1, (40, 40), (0.5, 0.5))
