"""Modes are clusters of similar examples, and are cached."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.defenses import mm_aug
from overheard.defenses.mm_aug import find_modes


def clouds(each: int, of: int, seed: int = 3) -> Tensor:
    """Dense clusters far apart, one after the other."""
    labels = torch.arange(of).repeat_interleave(each)
    noise = torch.randn(len(labels), of, generator=Seed(seed).generator())
    return 9 * torch.eye(of)[labels] + 0.1 * noise


def test_each_cluster_is_a_mode() -> None:
    found = find_modes(clouds(30, 5), 5, None)
    assert sorted(rows.tolist() for rows in found) == [
        list(range(start, start + 30)) for start in range(0, 150, 30)
    ]


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 5))
def test_every_example_is_in_one_mode_and_no_mode_is_empty(
    examples: int, modes: int, seed: int
) -> None:
    inputs = torch.randn(examples, 3, generator=Seed(seed).generator())
    found = find_modes(inputs, modes, None)
    assert 1 <= len(found) <= min(modes, examples)
    assert all(len(rows) for rows in found)
    assert sorted(torch.cat(found).tolist()) == list(range(examples))


def test_equal_examples_are_one_mode() -> None:
    (rows,) = find_modes(torch.ones(9, 2), 4, None)
    assert rows.tolist() == list(range(9))


def test_examples_outside_the_sample_join_the_nearest_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mm_aug, "SAMPLE_SIZE", 40)
    found = find_modes(clouds(30, 4, seed=8), 4, None)
    assert sorted(rows.tolist() for rows in found) == [
        list(range(start, start + 30)) for start in range(0, 120, 30)
    ]


ASKED: list[int] = []


def counted(inputs: Tensor) -> Tensor:
    ASKED.append(len(inputs))
    return inputs


def test_clusters_equal_inputs_once_also_in_a_new_tensor() -> None:
    ASKED.clear()
    reference, inputs = f"{__name__}:counted", clouds(5, 3, seed=4)
    first = find_modes(inputs, 3, reference)
    for again in (inputs, inputs.clone()):
        assert all(map(torch.equal, find_modes(again, 3, reference), first))
    assert ASKED == [15]
    find_modes(inputs, 2, reference)
    find_modes(inputs + 1, 3, reference)
    assert ASKED == [15, 15, 15]


def test_equal_inputs_give_the_same_modes() -> None:
    inputs = torch.randn(200, 6, generator=Seed(1).generator())
    torch.manual_seed(0)
    first = find_modes(inputs, 20, None)
    mm_aug._MODES.clear()
    before = torch.get_num_threads()
    torch.manual_seed(1)
    torch.set_num_threads(2)
    try:
        second = find_modes(inputs, 20, None)
    finally:
        torch.set_num_threads(before)
    assert len(first) == len(second)
    assert all(map(torch.equal, first, second))
