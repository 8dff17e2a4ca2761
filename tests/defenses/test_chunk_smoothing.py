"""The previous chunk is phased out by round; without one nothing changes."""

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


def test_without_a_previous_chunk_nothing_changes() -> None:
    data = chunk(12, 1)
    assert ChunkSmoothing().on_data(data, DefenseContext(4, client(1), Seed(0))) is data


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 8), st.integers(0, 9))
def test_draws_without_replacement(size: int, former: int, rounds: int, age: int) -> None:
    data, before = chunk(size, 1), chunk(former, 0)
    mixed = ChunkSmoothing(rounds).on_data(data, after(age, before))
    taken = list(zip(mixed.inputs.flatten().tolist(), mixed.labels.tolist(), strict=True))
    assert len(set(taken)) == len(taken) == size
    there = {(float(n), 1) for n in range(size)} | {(float(n), 0) for n in range(former)}
    assert set(taken) <= there


def test_says_that_the_final_composition_is_not_hidden() -> None:
    promise = ChunkSmoothing(rounds=4).promise(RunParameters(rounds=9, participation=1.0))
    assert promise.startswith("no formal promise")
    assert "over 4 rounds" in promise
