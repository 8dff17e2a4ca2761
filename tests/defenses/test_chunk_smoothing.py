"""The former chunk fades out, round by round, and nothing changes where there is none."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.defense import Former, Moment, Run
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.chunk_smoothing import ChunkSmoothing


def chunk(size: int, label: int) -> Examples:
    """Examples of one label whose input is their number."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def after(age: int, former: Examples, seed: int = 0) -> Moment:
    """So many rounds after an exchange in round 4."""
    return Moment(4 + age, client(1), Seed(seed), Former(former, 4))


def old_ones(smoothing: ChunkSmoothing, size: int, former: int, age: int) -> int:
    """How many of the examples trained on bear the former chunk's label."""
    mixed = smoothing.on_data(chunk(size, 1), after(age, chunk(former, 0)))
    assert len(mixed) == size
    return int((mixed.labels == 0).sum())


def test_the_former_chunk_fades_out_in_even_steps_and_is_gone_after_the_last() -> None:
    # Of 12 examples over 5 rounds: 5/6, 4/6, 3/6, 2/6, 1/6 of 12, then none.
    counts = [old_ones(ChunkSmoothing(rounds=5), 12, 12, age) for age in range(8)]
    assert counts == [10, 8, 6, 4, 2, 0, 0, 0]


def test_over_one_round_half_of_one_round_is_old() -> None:
    # Of 7 examples 1/2 is 3.5, counted down.
    assert [old_ones(ChunkSmoothing(rounds=1), 7, 9, age) for age in (0, 1)] == [3, 0]


def test_of_a_small_former_chunk_there_is_no_more_than_it_held() -> None:
    assert [old_ones(ChunkSmoothing(rounds=5), 12, 3, age) for age in (0, 4)] == [3, 2]
    assert old_ones(ChunkSmoothing(rounds=5), 12, 0, 0) == 0


def test_before_any_exchange_nothing_changes() -> None:
    data = chunk(12, 1)
    assert ChunkSmoothing().on_data(data, Moment(4, client(1), Seed(0))) is data


def test_long_after_an_exchange_nothing_changes() -> None:
    data = chunk(12, 1)
    assert ChunkSmoothing(rounds=5).on_data(data, after(5, chunk(12, 0))) is data


def test_a_client_without_examples_stays_without() -> None:
    assert len(ChunkSmoothing().on_data(chunk(0, 1), after(0, chunk(12, 0)))) == 0


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 8), st.integers(0, 9))
@settings(deadline=None)
def test_none_of_a_chunk_is_taken_twice(size: int, former: int, rounds: int, age: int) -> None:
    data, before = chunk(size, 1), chunk(former, 0)
    mixed = ChunkSmoothing(rounds).on_data(data, after(age, before))
    taken = list(zip(mixed.inputs.flatten().tolist(), mixed.labels.tolist(), strict=True))
    assert len(set(taken)) == len(taken) == size
    there = {(float(n), 1) for n in range(size)} | {(float(n), 0) for n in range(former)}
    assert set(taken) <= there


def test_another_round_draws_other_examples_of_both_chunks() -> None:
    smoothing, data, former = ChunkSmoothing(rounds=1), chunk(40, 1), chunk(40, 0)
    first, second = (smoothing.on_data(data, after(0, former, seed)) for seed in (1, 2))
    for label in (0, 1):
        one, other = (
            set(m.inputs[m.labels == label].flatten().tolist()) for m in (first, second)
        )
        assert one != other


def test_a_shift_that_comes_at_once_comes_slowly() -> None:
    # Half the old labels bear 1, all of the new ones: the share climbs to 1 in even steps.
    former = Examples(torch.zeros(600, 1), torch.arange(600) % 2)
    smoothing, shares = ChunkSmoothing(rounds=3), []
    for age in range(4):
        mixed = smoothing.on_data(chunk(600, 1), after(age, former, seed=age))
        shares.append(float(mixed.labels.double().mean()))
    # 1 - (3/4, 2/4, 1/4, 0) / 2. Of 300 or more drawn of the 600, the share of a label has a
    # standard deviation of 0.02 or less, and weighs 3/4 or less.
    assert shares == pytest.approx([0.625, 0.75, 0.875, 1.0], abs=0.06)


def test_promises_nothing_and_says_that_all_is_there_in_the_end() -> None:
    promise = ChunkSmoothing(rounds=4).promise(Run(rounds=9, participation=1.0))
    assert promise.startswith("no formal promise")
    assert "over 4 rounds" in promise


def test_to_fade_out_over_no_round_is_refused() -> None:
    with pytest.raises(ValueError, match="1 round or more, got 0"):
        replace(ChunkSmoothing(), rounds=0)
