"""The previous chunk is phased out by round; without one nothing changes."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.defense import DefenseContext, PreviousData, RunParameters
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.chunk_smoothing import ChunkSmoothing


def chunk(size: int, label: int) -> Examples:
    """Examples of one label, whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def after(age: int, former: Examples, seed: int = 0) -> DefenseContext:
    """The context `age` rounds after a change in round 4."""
    return DefenseContext(4 + age, client(1), Seed(seed), PreviousData(former, 4))


def old_ones(smoothing: ChunkSmoothing, size: int, former: int, age: int) -> int:
    """Count the training examples with the label of the previous chunk."""
    mixed = smoothing.on_data(chunk(size, 1), after(age, chunk(former, 0)))
    assert len(mixed) == size
    return int((mixed.labels == 0).sum())


def test_phases_the_previous_chunk_out_in_equal_steps() -> None:
    # Of 12 examples over 5 rounds: 5/6, 4/6, 3/6, 2/6, 1/6 of 12, then none.
    counts = [old_ones(ChunkSmoothing(rounds=5), 12, 12, age) for age in range(8)]
    assert counts == [10, 8, 6, 4, 2, 0, 0, 0]


def test_with_one_round_half_of_that_round_is_old() -> None:
    # Of 7 examples 1/2 is 3.5, counted down.
    assert [old_ones(ChunkSmoothing(rounds=1), 7, 9, age) for age in (0, 1)] == [3, 0]


def test_uses_no_more_old_examples_than_the_previous_chunk_has() -> None:
    assert [old_ones(ChunkSmoothing(rounds=5), 12, 3, age) for age in (0, 4)] == [3, 2]
    assert old_ones(ChunkSmoothing(rounds=5), 12, 0, 0) == 0


def test_without_a_previous_chunk_nothing_changes() -> None:
    data = chunk(12, 1)
    assert ChunkSmoothing().on_data(data, DefenseContext(4, client(1), Seed(0))) is data


def test_long_after_a_change_only_the_current_chunk_is_used() -> None:
    data = chunk(12, 1)
    assert ChunkSmoothing(rounds=5).on_data(data, after(5, chunk(12, 0))) is data


def test_a_client_without_examples_gets_none() -> None:
    assert len(ChunkSmoothing().on_data(chunk(0, 1), after(0, chunk(12, 0)))) == 0


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 8), st.integers(0, 9))
def test_draws_without_replacement(size: int, former: int, rounds: int, age: int) -> None:
    data, before = chunk(size, 1), chunk(former, 0)
    mixed = ChunkSmoothing(rounds).on_data(data, after(age, before))
    taken = list(zip(mixed.inputs.flatten().tolist(), mixed.labels.tolist(), strict=True))
    assert len(set(taken)) == len(taken) == size
    there = {(float(n), 1) for n in range(size)} | {(float(n), 0) for n in range(former)}
    assert set(taken) <= there


def test_draws_different_examples_of_both_chunks_in_another_round() -> None:
    smoothing, data, former = ChunkSmoothing(rounds=1), chunk(40, 1), chunk(40, 0)
    first, second = (smoothing.on_data(data, after(0, former, seed)) for seed in (1, 2))
    for label in (0, 1):
        one, other = (
            set(m.inputs[m.labels == label].flatten().tolist()) for m in (first, second)
        )
        assert one != other


def test_a_sudden_shift_becomes_gradual() -> None:
    # Half the old labels bear 1, all of the new ones: the share climbs to 1 in even steps.
    former = Examples(torch.zeros(600, 1), torch.arange(600) % 2)
    smoothing, shares = ChunkSmoothing(rounds=3), []
    for age in range(4):
        mixed = smoothing.on_data(chunk(600, 1), after(age, former, seed=age))
        shares.append(float(mixed.labels.double().mean()))
    # 1 - (3/4, 2/4, 1/4, 0) / 2. Of 300 or more drawn of the 600, the share of a label has a
    # standard deviation of 0.02 or less, and weighs 3/4 or less.
    assert shares == pytest.approx([0.625, 0.75, 0.875, 1.0], abs=0.06)


def test_says_that_the_final_composition_is_not_hidden() -> None:
    promise = ChunkSmoothing(rounds=4).promise(RunParameters(rounds=9, participation=1.0))
    assert promise.startswith("no formal promise")
    assert "over 4 rounds" in promise


def test_refuses_fewer_than_one_round() -> None:
    with pytest.raises(ValueError, match="rounds must be 1 or more, got 0"):
        replace(ChunkSmoothing(), rounds=0)
